"""Releases that cannot serve: refused before the switch where that is possible, else the old one is back by itself.

Each costs a run of the deploy, and the rolled-back ones two starts of the server: that is what is shown here.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host

from gpubox.facts import release
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.service import UNIT
from tests.faults import broken
from tests.faults.client import Client
from tests.faults.workshop import Workshop

MODEL = "/root/models/tiny-chat"
STAND_INS = "/root/gpubox-broken"
OVERRIDE = "shows what the box itself says, with the early rule out of the way"

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # name: keys of the profile, settings of the box, what the run says
    "unknown flag": ({"flags": {"no-such-flag": True}}, {}, "no-such-flag"),
    "unknown flag, asked of SGLang": (
        {"flags": {"no-such-flag": True}},
        {"overrides": [{"rule": "flag-unknown", "reason": OVERRIDE}]},
        "unrecognized arguments: --no-such-flag",
    ),
    "renamed flag": (
        {"flags": {"nsa-decode-backend": "flashmla_kv"}},
        {"overrides": [{"rule": "flag-unknown", "reason": OVERRIDE}]},
        "--nsa-decode-backend is perhaps --dsa-decode-backend here",
    ),
    "bad choice": (
        {"flags": {"attention-backend": "no-such-backend"}},
        {"overrides": [{"rule": "flag-value", "reason": OVERRIDE}]},
        "invalid choice: 'no-such-backend'",
    ),
    "port taken": ({"flags": {"port": 30001}}, {}, "listens on 30001"),
    "missing model": (
        {"flags": {"model-path": "/root/models/none"}, "model": {}},
        {},
        "/root/models/none is not on this",
    ),
    "truncated shard": ({"flags": {"model-path": "/root/models/cut"}, "model": {}}, {}, "model.safetensors"),
}
ROLLED_BACK: dict[str, tuple[dict[str, Any], str]] = {
    "health but no answer": ({"environment": {"BROKEN": "silent", "PYTHONPATH": STAND_INS}}, "answered ''"),
    "dies at the first request": (
        {"environment": {"BROKEN": "dies", "PYTHONPATH": STAND_INS}},
        "the server ended",  # over the probe's question or, as often, over that of another client
    ),
    "never ready": (
        {"environment": {"BROKEN": "never", "PYTHONPATH": STAND_INS}, "start_timeout_s": 20},
        "not ready after",
    ),
}
CI = {"unknown flag, asked of SGLang", "port taken", "health but no answer"}
"""The cases that every `make test` runs: a look on the box, no SGLang at all, a rollback."""


def some_for_ci(cases: Iterable[str]) -> list[Any]:
    return [pytest.param(case, marks=pytest.mark.ci if case in CI else ()) for case in cases]


SECOND_GATE = {
    "sglang/srt/model_executor/gpubox_gate.py": '"""A test."""\n\n\ndef _should_run_flashinfer_autotune(): ...\n'
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, boxes: Inventory, gpu01: Box) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("checkout") / "gpubox", boxes.path, gpu01.name).prepare()


@pytest.fixture(scope="module")
def good(workshop: Workshop, on_box: Host) -> Iterator[str]:
    """The release that serves before each case and must serve after it: its digest."""
    workshop.deploy("tiny-cpu").ended_well()
    on_box.check_output(f"mkdir -p {STAND_INS} && echo %s > {STAND_INS}/sitecustomize.py", text(broken.__file__))
    on_box.check_output(
        f"rm -rf /root/models/cut && cp -r {MODEL} /root/models/cut && rm -f /root/models/cut/.gpubox-made "
        "&& truncate -s -1000 /root/models/cut/model.safetensors"
    )
    yield state(on_box)["current"]
    on_box.check_output(f"rm -rf {STAND_INS} /root/models/cut")


@pytest.fixture
def taken_port(on_box: Host) -> Iterator[None]:
    on_box.check_output("systemd-run --quiet --unit=gpubox-test-port python3 -m http.server 30001")
    yield
    on_box.check_output("systemctl stop gpubox-test-port")


@pytest.mark.pain("P45", "P70", "P89")
@pytest.mark.parametrize("case", some_for_ci(REFUSED))
def test_refused_with_the_old_one_serving(
    case: str, workshop: Workshop, good: str, gpu01: Box, on_box: Host, taken_port: None
) -> None:
    keys, settings, told = REFUSED[case]
    refuse(workshop.profile("broken", **keys), told, workshop, gpu01, on_box, good, **settings)


def test_a_wrong_package_is_refused(workshop: Workshop, good: str, gpu01: Box, on_box: Host) -> None:
    workshop.stack("wrong-package", {"tokenizers": "0.21.4"})
    profile = workshop.profile("wrong-package", stack="wrong-package")
    refuse(profile, "tokenizers", workshop, gpu01, on_box, good)
    assert state(on_box)["superfluous"]
    workshop.deploy("tiny-cpu").ended_well()
    assert state(on_box)["superfluous"] == []


@pytest.mark.pain("P39")
def test_a_patch_of_unknown_shape_is_refused(workshop: Workshop, good: str, gpu01: Box, on_box: Host) -> None:
    """A second definition of what is patched: which one counts, nobody has looked at."""
    workshop.stack("unknown-shape", {}, patches=["flashinfer-cutlass-autotune"], extra=SECOND_GATE)
    profile = workshop.profile("unknown-shape", stack="unknown-shape")
    overrides = [{"rule": "autotune-patch-needless", "reason": OVERRIDE}]
    refuse(profile, "is defined in 2 files", workshop, gpu01, on_box, good, overrides=overrides)


@pytest.mark.pain("P65", "P68")
@pytest.mark.parametrize("case", some_for_ci(ROLLED_BACK))
def test_rolled_back_by_itself(case: str, workshop: Workshop, good: str, gpu01: Box, on_box: Host) -> None:
    keys, told = ROLLED_BACK[case]
    roll_back(workshop.profile("broken", **keys), told, workshop, gpu01, on_box, good)


def test_out_of_memory_is_rolled_back(
    workshop: Workshop, good: str, gpu01: Box, on_box: Host, on_hypervisor: Host
) -> None:
    """More KV cache than the container may have: it is allocated only when the server starts."""
    container = gpu01.settings.container
    assert container is not None
    limit = f"lxc-cgroup -n {container.name} memory.max"
    if on_hypervisor.run(limit).rc != 0:  # cgroup v1
        limit = f"lxc-cgroup -n {container.name} memory.limit_in_bytes"
    before = on_hypervisor.check_output(limit)
    profile = workshop.profile("broken", flags={"max-total-tokens": 30_000_000})
    on_hypervisor.check_output(f"{limit} 6G")
    try:
        roll_back(profile, "the container's memory limit", workshop, gpu01, on_box, good)
    finally:
        on_hypervisor.check_output(f"{limit} {before}")


def test_a_change_that_alters_nothing_does_not_restart(workshop: Workshop, good: str, on_box: Host) -> None:
    began = started(on_box)
    profile = workshop.profile("renamed", summary="Another name, other words", stop_timeout_s=61, notes=["seen"])
    workshop.deploy(profile).ended_well()
    assert (started(on_box), state(on_box)["current"]) == (began, good)
    assert "TimeoutStopSec=61" in on_box.check_output("systemctl cat %s", UNIT)
    assert workshop.deploy(profile).ended_well().changed == []
    workshop.deploy("tiny-cpu").ended_well()
    assert started(on_box) == began


def refuse(profile: str, told: str, workshop: Workshop, box: Box, on_box: Host, good: str, **settings: Any) -> None:
    """The run fails and says why, and nobody who asked meanwhile noticed."""
    began = started(on_box)
    with Client(box) as client:
        run = workshop.deploy(profile, **settings)
    assert run.code != 0, run.output[-2000:]
    assert told in run.output, run.output[-3000:]
    assert (client.failures, client.wrong, len(client.seen) > 3) == (0, [], True)
    assert (started(on_box), state(on_box)["current"]) == (began, good)


def roll_back(profile: str, told: str, workshop: Workshop, box: Box, on_box: Host, good: str) -> None:
    """The run fails with both stories, and the old release answers again, after one gap."""
    with Client(box) as client:
        run = workshop.deploy(profile)
        answers = client.ask()
    assert run.code != 0, run.output[-2000:]
    assert told in run.output, run.output[-4000:]
    assert f"going back to release {good}" in run.output
    assert f"release {good} answers again" in run.output
    assert answers
    assert (client.gaps, [text for text in client.wrong if text]) == (1, [])
    assert (state(on_box)["current"], state(on_box)["runs"]) == (good, good)


def state(on_box: Host) -> dict[str, Any]:
    """What gpubox.remote.switch says of the box."""
    return dict(json.loads(on_box.check_output("sh -c %s", release.look({"unit": UNIT}).get_raw_value())))


def started(on_box: Host) -> str:
    return str(on_box.check_output("systemctl show --property=MainPID,ExecMainStartTimestampMonotonic %s", UNIT))


def text(path: str) -> str:
    return Path(path).read_text()
