"""A run that is killed in the middle of a switch: whatever serves is one whole release, and the next run ends it.

Each moment costs a start of the server, because that is what is interrupted.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.support import paths
from tests.faults.client import Client
from tests.faults.test_releases import state
from tests.faults.workshop import Workshop

MOMENTS = {
    # what the run says last (a regular expression), and how long after that it is killed (seconds)
    "it is looked at": ("looking at the release", 1.0),
    "the switch begins": ("switching to release", 0.0),
    "the old server stops": ("switching to release", 0.5),
    "it loads": (r"(connect|load|warm-up) \(after", 0.0),  # the probe looks once a second: it may miss a short phase
    "it is asked": (r"burst \(after", 0.1),
}
DAMAGE = "rm -r /root/ml-env/lib/python3.11/site-packages/orjson*"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, boxes: Inventory, gpu01: Box) -> Iterator[Workshop]:
    made = Workshop(tmp_path_factory.mktemp("checkout") / "gpubox", boxes.path, gpu01.name).prepare()
    made.deploy("tiny-cpu").ended_well()
    yield made
    made.deploy("tiny-cpu").ended_well()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_switch_is_ended_by_the_next_run(moment: str, workshop: Workshop, gpu01: Box, on_box: Host) -> None:
    said, after_s = MOMENTS[moment]
    old = state(on_box)["current"]
    profile = workshop.profile("next", flags={"random-seed": list(MOMENTS).index(moment) + 1})
    with Client(gpu01) as client:
        killed(workshop, profile, said, after_s)
        time.sleep(2)  # what the box was told goes on without us
        half = state(on_box)
        workshop.deploy(profile).ended_well()
    now = state(on_box)
    new = now["current"]
    assert new != old
    assert {half["current"], half["unit"]} <= {old, new}
    assert half["runs"] in {old, new, None}
    assert (now["unit"], now["runs"], now["linked"]) == (new, new, True)
    assert (client.wrong, client.gaps) == ([], 1)
    assert workshop.deploy(profile).ended_well().changed == []


def test_a_killed_repair_of_the_venv_is_ended_by_the_next_run(workshop: Workshop, on_box: Host) -> None:
    on_box.check_output(DAMAGE)
    profile = workshop.profile("next", flags={"random-seed": 1})
    killed(workshop, profile, "venv in place", 0.5)
    workshop.deploy(profile).ended_well()
    assert on_box.run("ls /root/ml-env/lib/python3.11/site-packages/orjson").rc == 0
    now = state(on_box)
    assert now["runs"] == now["current"]
    assert workshop.deploy(profile).ended_well().changed == []


def killed(workshop: Workshop, profile: str, said: str, after_s: float) -> None:
    """A run that is ended by SIGKILL so long after it said something."""
    program = f"{sys.prefix}/bin/pyinfra"
    command = [program, "-y", str(workshop.inventory(profile)), "deploy.py", "--limit", workshop.box]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=paths.root(),
        env=workshop.environment(),
    )
    lines = []
    for line in run.stdout or ():
        lines.append(line)
        if re.search(said, line):
            time.sleep(after_s)
            run.kill()
            run.wait()
            return
    pytest.fail(f"the run never said {said!r}: {''.join(lines)[-3000:]}")
