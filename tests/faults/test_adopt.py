"""A server that somebody started by hand is taken over: same flags, same environment, one restart, no secret told."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from gpubox import inventory
from gpubox.support import paths
from tests.deploy import Run, converge
from tests.faults import onboarding
from tests.faults.onboarding import NAME, onboard
from tests.ssh import spec

PROFILE = "adopted-by-the-tests"
KEY, TOKEN = "hunter2hunter2", "hf_abcdefghijklmnopqrst"
FLAGS = (
    "--model-path /root/models/tiny-chat --served-model-name tiny --device cpu --host 0.0.0.0 --port 30000 "
    "--max-total-tokens 16384 --sleep-on-idle"
)
BY_HAND = (
    f"cd /root; OMP_NUM_THREADS=1 SGLANG_LOG_MS=1 HF_TOKEN={TOKEN} nohup /root/by-hand/bin/python3 -u "
    f"-m sglang.launch_server {FLAGS} --api-key {KEY} >sglang.log 2>&1 </dev/null & echo $!"
)
FORGET = (
    "systemctl disable --now sglang; rm /etc/systemd/system/sglang.service; systemctl daemon-reload; "
    "cp -aL /root/ml-env /root/by-hand; "
    "rm -r /root/ml-env /var/lib/gpubox/releases /var/lib/gpubox/current"
)
ANSWERS = (
    "for n in $(seq 300); do curl -sf -H 'Authorization: Bearer "
    + KEY
    + "' http://127.0.0.1:30000/v1/models >/dev/null && exit 0; sleep 1; done; exit 1"
)


@dataclass(frozen=True)
class Taken:
    """What onboarding said, and what the converge after it did."""

    pid: int
    said: dict[str, Any]
    run: Run
    path: Path
    host: Host
    folder: Path


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    """A box where the server ran by hand, in a venv of somebody's own, onboarded and converged."""
    folder = tmp_path_factory.mktemp("adopt")
    onboarding.a_box()
    code, said = onboard(folder, "--yes")
    assert code == 0, said
    path = folder / "box.py"
    converge(path).ended_well()
    box = inventory.load(path).box(NAME)
    host = testinfra.get_host(spec(box.name, box.connection))
    host.run_expect([0], FORGET)
    pid = int(host.check_output(BY_HAND).split()[-1])
    host.run_expect([0], ANSWERS)
    path.unlink()
    try:
        code, said = onboard(folder, "--yes", "--adopt", "--profile-name", PROFILE)
        assert code == 0, said
        yield Taken(pid, said, converge(path).ended_well(), path, host, folder)
    finally:
        (paths.profiles() / f"{PROFILE}.yaml").unlink(missing_ok=True)
        host.run(f"kill {pid}")


def test_the_process_is_the_same_under_systemd(taken: Taken) -> None:
    pid = taken.host.check_output("systemctl show --value --property=MainPID sglang")
    words = taken.host.file(f"/proc/{pid}/cmdline").content.decode().split("\0")
    flags = words[words.index("sglang.launch_server") + 1 : -1]
    assert " ".join(flags[:-2]) == FLAGS
    assert flags[-2] == "--config"
    assert words[1] == "-u"
    variables = taken.host.file(f"/proc/{pid}/environ").content.decode().split("\0")
    assert {"OMP_NUM_THREADS=1", "SGLANG_LOG_MS=1"} <= set(variables)


def test_it_was_restarted_once_and_nothing_else_was_changed(taken: Taken) -> None:
    assert taken.host.run(f"test -e /proc/{taken.pid}").rc == 1
    assert taken.host.check_output("systemctl show --value --property=NRestarts sglang") == "0"
    changed = {name.partition("|")[0].strip() for name in taken.run.changed}
    assert changed == {f"{NAME}: Server", f"{NAME}: Ready"} | {name for name in changed if "Python env" in name}
    assert converge(taken.path).ended_well().changed == []


def test_the_key_is_asked_for_as_before_and_stands_nowhere(taken: Taken) -> None:
    url = "http://127.0.0.1:30000/v1/models"
    assert taken.host.run(f"curl -sf {url}").rc != 0
    taken.host.run_expect([0], f"curl -sf -H 'Authorization: Bearer {KEY}' {url}")
    profile = (paths.profiles() / f"{PROFILE}.yaml").read_text()
    seen = [profile, taken.path.read_text(), taken.run.output, str(taken.said)]
    seen += [taken.host.check_output("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")]
    assert [text for text in seen if KEY in text or TOKEN in text] == []
    for kind, secret in (("api-key", KEY), ("hub-token", TOKEN)):
        file = taken.folder / "config/gpubox/secrets" / f"{NAME}.{kind}"
        assert (file.read_text(), file.stat().st_mode & 0o777) == (f"{secret}\n", 0o600)


def test_the_old_venv_is_where_it_was(taken: Taken) -> None:
    assert taken.host.file("/root/by-hand/pyvenv.cfg").exists
