"""A first release that does not answer: the server that somebody had started by hand before serves again.

Costs three starts of the server: the one by hand, that one again, and the release that takes its place in the end.
"""

import shlex
import time
from collections.abc import Iterator

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.remote.handover import LAUNCHER
from gpubox.server.service import service_of
from tests.faults import broken
from tests.faults.client import Client
from tests.faults.test_releases import STAND_INS, text
from tests.faults.workshop import Workshop

LOADING_S = 300
A_BOX_OF_SOMEBODYS = (
    "systemctl disable --now sglang; rm /etc/systemd/system/sglang.service; systemctl daemon-reload; "
    "cp -aL /root/ml-env /root/somebodys; rm /root/ml-env; mv -T /root/somebodys /root/ml-env; "
    "rm -r /var/lib/gpubox/releases /var/lib/gpubox/current; rm -f /var/lib/gpubox/previous"
)
"""Its environment lies where gpubox will put a link."""


@pytest.fixture
def workshop(
    tmp_path_factory: pytest.TempPathFactory, boxes: Inventory, gpu01: Box, on_box: Host
) -> Iterator[Workshop]:
    made = Workshop(tmp_path_factory.mktemp("checkout") / "gpubox", boxes.path, gpu01.name).prepare()
    made.deploy("tiny-cpu").ended_well()
    on_box.check_output(f"mkdir -p {STAND_INS} && echo %s > {STAND_INS}/sitecustomize.py", text(broken.__file__))
    yield made
    made.deploy("tiny-cpu").ended_well()
    on_box.check_output(f"rm -rf {STAND_INS} /root/ml-env.old-*")


def test_a_first_release_that_fails_gives_way(workshop: Workshop, gpu01: Box, on_box: Host) -> None:
    on_box.run_expect([0], A_BOX_OF_SOMEBODYS)
    argv = service_of(gpu01).argv
    flags = shlex.join(argv[argv.index(LAUNCHER) + 1 :])
    start = f"OMP_NUM_THREADS=1 nohup /root/ml-env/bin/python3 -m {LAUNCHER} {flags} >/dev/null 2>&1 </dev/null &"
    on_box.run_expect([0], start)
    wait_for_an_answer(gpu01)

    run = workshop.deploy(workshop.profile("broken", environment={"BROKEN": "silent", "PYTHONPATH": STAND_INS}))
    assert run.code != 0
    assert "there is no earlier release" in run.output
    assert "started by hand is started again" in run.output
    wait_for_an_answer(gpu01)
    assert on_box.file("/root/ml-env").is_directory
    assert not on_box.file("/root/ml-env").is_symlink
    assert on_box.check_output("systemctl is-active sglang || true") == "inactive"

    workshop.deploy("tiny-cpu").ended_well()
    assert on_box.file("/root/ml-env").is_symlink
    assert not on_box.file("/var/lib/gpubox/ended.json").exists
    assert workshop.deploy("tiny-cpu").ended_well().changed == []


def wait_for_an_answer(box: Box) -> None:
    until, client = time.monotonic() + LOADING_S, Client(box)
    while not client.ask():
        assert time.monotonic() < until, f"no answer after {LOADING_S} s"
        time.sleep(1)
