"""What systemd really runs, and who can reach it: each changed by hand, then one run of the deploy."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testinfra.host import Host

from gpubox.facts import release
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.service import UNIT, UNIT_PATH
from gpubox.support import paths
from tests.deploy import Run

RELOAD, RESTART = "systemctl daemon-reload", f"systemctl daemon-reload && systemctl restart {UNIT}"
SLEEP = "ExecStart=\\nExecStart=/bin/sleep infinity"
LIKE_OURS = "\\nEnvironmentFile=/var/lib/gpubox/current/environment"


def written(path: str, settings: str) -> str:
    """Shell text that writes a file for [Service]."""
    return f"mkdir -p {path.rpartition('/')[0]} && printf '[Service]\\n{settings}\\n' >{path}"


RUNTIME, CONTROL = f"/run/systemd/system/{UNIT}.d/nice.conf", f"/etc/systemd/system.control/{UNIT}"
NO_RESTART = {
    # name: what is done by hand, what the run names
    "systemctl edit": (
        f"{written(f'{UNIT_PATH}.d/override.conf', 'MemoryMax=200G')} && {RELOAD}",
        f"{UNIT_PATH}.d/override.conf sets MemoryMax",
    ),
    "set-property": (
        f"systemctl set-property {UNIT} CPUWeight=50",
        f"/etc/systemd/system.control/{UNIT}.d/50-CPUWeight.conf sets CPUWeight",
    ),
    "set-property --runtime": (
        f"systemctl set-property --runtime {UNIT} TasksMax=4096",
        f"/run/systemd/system.control/{UNIT}.d/50-TasksMax.conf sets TasksMax",
    ),
    "a setting that nobody has loaded yet": (written(RUNTIME, "Nice=5"), f"{RUNTIME} sets Nice"),
}
"""All in one run: nothing of it is in the process that serves."""

WITH_RESTART = {
    "another program": (
        f"{written(f'{UNIT_PATH}.d/override.conf', SLEEP)} && {RESTART}",
        "its command line is /bin/sleep infinity",
    ),
    "a unit of higher precedence": (
        f"{written(CONTROL, SLEEP + LIKE_OURS)} && {RESTART}",
        f"{CONTROL} sets",
    ),
    "a variable": (
        f"{written(f'{UNIT_PATH}.d/nccl.conf', 'Environment=NCCL_DEBUG=INFO')} && {RESTART}",
        f"{UNIT_PATH}.d/nccl.conf sets Environment",
    ),
}
CI = {"another program"}


@pytest.fixture(scope="module")
def converged(deploy: Callable[[], Run]) -> None:
    deploy().ended_well()


@pytest.mark.ci
def test_what_is_set_beside_the_unit_goes_aside_without_a_restart(
    converged: None, deploy: Callable[[], Run], on_box: Host
) -> None:
    before = started(on_box)
    for command, _ in NO_RESTART.values():
        on_box.run_expect([0], command)
    run = deploy().ended_well()
    unseen = [name for name, (_, told) in NO_RESTART.items() if told not in run.output]
    assert unseen == []
    assert started(on_box) == before
    assert on_box.check_output("systemctl show --value --property=DropInPaths %s", UNIT) == ""
    shown = on_box.check_output("systemctl show --property=MemoryMax,CPUWeight %s", UNIT)
    assert "MemoryMax=infinity" in shown
    assert "CPUWeight=[not set]" in shown
    kept = on_box.check_output("ls /var/lib/gpubox/kept/%s.d.old-*", UNIT)
    assert {"override.conf", "nice.conf"} <= set(kept.split())
    assert deploy().ended_well().changed == []


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.ci if case in CI else ()) for case in WITH_RESTART]
)
def test_a_process_that_is_not_the_one_asked_for_is_replaced(
    case: str, converged: None, deploy: Callable[[], Run], on_box: Host
) -> None:
    command, told = WITH_RESTART[case]
    on_box.run_expect([0], command)
    run = deploy().ended_well()
    assert told in run.output, run.output[-3000:]
    found = state(on_box)
    assert (found["runs"], found["effective"]["process"]) == (found["current"], None)
    assert (found["effective"]["aside"], found["effective"]["extra"]) == ([], [])
    assert deploy().ended_well().changed == []


def test_what_counts_for_all_services_is_refused_by_name(
    converged: None, deploy: Callable[[], Run], on_box: Host
) -> None:
    path = "/etc/systemd/system/service.d/limits.conf"
    on_box.run_expect([0], written(path, "LimitNOFILE=1024"))
    try:
        run = deploy()
    finally:
        on_box.run_expect([0], f"rm {path}; rmdir --ignore-fail-on-non-empty {path.rpartition('/')[0]}; {RELOAD}")
    assert run.code != 0
    assert f"{path} sets LimitNOFILE for more services than this" in run.output
    deploy().ended_well()


@pytest.mark.ci
def test_variables_that_systemd_gives_every_service_are_told(
    converged: None, deploy: Callable[[], Run], on_box: Host
) -> None:
    on_box.run_expect([0], "systemctl set-environment CUDA_LAUNCH_BLOCKING=1")
    try:
        run = deploy().ended_well()
    finally:
        on_box.run_expect([0], "systemctl unset-environment CUDA_LAUNCH_BLOCKING")
    assert "systemd gives every service CUDA_LAUNCH_BLOCKING" in run.output
    assert run.changed == []


@pytest.fixture
def firewall(gpu01: Box) -> Iterator[None]:
    """This machine's own: as good as one between, and nothing on the box is touched."""
    rules = f"""table ip gpubox_test {{ chain out {{ type filter hook output priority 0; policy accept;
        ip daddr {gpu01.address} tcp dport {gpu01.profile.port} drop; }}; }}"""
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
    yield
    subprocess.run(["nft", "delete", "table", "ip", "gpubox_test"], check=True)


@pytest.mark.ci
def test_a_server_that_only_its_box_reaches_is_told(
    converged: None, firewall: None, deploy: Callable[[], Run], boxes: Inventory, gpu01: Box
) -> None:
    run = deploy().ended_well()
    assert "the server answers on the box, not from here" in run.output
    assert f"a firewall that drops what comes to port {gpu01.profile.port}" in run.output
    assert run.changed == []
    checks = doctor(boxes, gpu01)
    assert {name: checks[name]["status"] for name in ("endpoint", "outside")} == {"endpoint": "pass", "outside": "fail"}


def test_the_deep_doctor_reads_every_file(converged: None, boxes: Inventory, gpu01: Box, on_box: Host) -> None:
    """A change of the same size that hides its time: only reading tells."""
    path = "/root/ml-env/lib/python3.11/site-packages/click/__init__.py"
    on_box.run_expect([0], f"cp -p {path} /root/kept-click.py && touch -r {path} /root/kept-time")
    on_box.run_expect([0], f"sed -i '1s/./X/' {path} && touch -r /root/kept-time {path}")
    try:
        checks = doctor(boxes, gpu01, "--deep")
    finally:
        on_box.run_expect([0], f"cp -p /root/kept-click.py {path} && rm /root/kept-click.py /root/kept-time")
    assert (checks["venv"]["status"], checks["deep.venv"]["status"]) == ("pass", "fail")
    assert "click/__init__.py: another content" in checks["deep.venv"]["found"]
    assert doctor(boxes, gpu01, "--deep")["deep.venv"]["status"] == "pass"


def doctor(boxes: Inventory, box: Box, *more: str) -> dict[str, dict[str, str]]:
    """Its checks by name."""
    words = ["-m", "gpubox.cli", "doctor", box.name, f"--inventory={boxes.path}", "--json", *more]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=paths.root())
    assert done.returncode in {0, 1, 2}, done.stderr
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


def state(on_box: Host) -> dict[str, Any]:
    """What gpubox.remote.switch says of the box."""
    return dict(json.loads(on_box.check_output("sh -c %s", release.look({"unit": UNIT}).get_raw_value())))


def started(on_box: Host) -> str:
    return str(on_box.check_output("systemctl show --property=MainPID,ExecMainStartTimestampMonotonic %s", UNIT))
