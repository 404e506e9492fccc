"""Which docker containers a reload of systemd may take the cards from; and that nothing reloads
without need."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.context import ctx_host

from gpubox.driver import docker
from gpubox.facts.docker import DockerAtRisk
from gpubox.operations.reload import warn
from gpubox.support import paths

pytestmark = pytest.mark.pain("P97")

GPUS = '[{"Driver":"","Count":-1,"DeviceIDs":null,"Capabilities":[["gpu"]],"Options":{}}]'
CDI = '[{"Driver":"cdi","Count":0,"DeviceIDs":["nvidia.com/gpu=all"],"Capabilities":null,"Options":null}]'
NODES = '[{"PathOnHost":"/dev/nvidia0","PathInContainer":"/dev/nvidia0","CgroupPermissions":"rwm"}]'


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (f"/vllm\trunc\t{GPUS}\t[]", ["vllm"]),
        (f"/vllm\trunc\t{GPUS}\tnull", ["vllm"]),
        ("/ollama\tnvidia\tnull\t[]", ["ollama"]),
        (f"/told\trunc\t{GPUS}\t{NODES}", []),
        (f"/cdi\trunc\t{CDI}\t[]", []),
        ("/web\trunc\tnull\tnull", []),
        ("/odd\trunc\tnot json\t{}", []),
        ("Cannot connect to the Docker daemon", []),
    ],
)
def test_containers_whose_cards_came_by_the_hook(line: str, names: list[str]) -> None:
    assert docker.at_risk(f"{line}\n") == names


@pytest.mark.parametrize(("driver", "names"), [("systemd", ["vllm"]), ("cgroupfs", []), (None, [])])
def test_the_question(tmp_path: Path, driver: str | None, names: list[str]) -> None:
    program = tmp_path / "docker"
    if driver is not None:
        program.write_text(
            f"#!/bin/sh\ncase $1 in info) echo {driver} ;; ps) echo 1a2b ;; "
            f"inspect) printf '/vllm\\trunc\\t%s\\tnull\\n' '{GPUS}' ;; esac\n"
        )
        program.chmod(0o755)
    words = ["sh", "-c", docker.QUESTION]
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(words, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert docker.at_risk(done.stdout) == names


def test_it_is_said_before_the_reload_and_how_to_have_them_back(caplog: pytest.LogCaptureFixture) -> None:
    on: Any = SimpleNamespace(print_prefix="[gpu01] ")
    with ctx_host.use(on), caplog.at_level("WARNING", logger="pyinfra"):
        warn(list)
        assert caplog.text == ""
        warn(lambda: ["vllm"])
    assert "docker restart vllm" in caplog.text


RELOADS = {
    "gpubox/hypervisor/create.py": 1,  # inside a container that is made in this moment
    "gpubox/operations/card_limits.py": 4,
    "gpubox/operations/fabric.py": 1,
    "gpubox/operations/modules.py": 3,
    "gpubox/remote/handover.py": 3,  # once, where a server that somebody started is ended, or started again
    "gpubox/remote/switch.py": 2,
}
"""Every place that makes systemd read its units anew, each of them behind a condition that its
own tests show: operations/test_card_limits.py (test_what_is_done), operations/test_fabric.py
(test_nothing_to_do), test_hypervisor_host.py (test_device_nodes, test_persistence) and
test_release_switch.py (test_systemd_reads_its_units_anew_only_where_one_changed)."""


def test_no_other_place_reloads() -> None:
    """In code, not in words: `daemon-reload`, and `enable` and `disable`, which reload by
    themselves."""
    pattern = re.compile(r"""["' ](daemon-reload|enable|disable)["' ](?=.*[,")])""")
    found = {}
    for file in [*paths.root().glob("gpubox/**/*.py"), *paths.root().glob("tasks/*.py")]:
        lines = [line for line in file.read_text().splitlines() if "systemctl" in line and " a systemctl" not in line]
        count = sum(len(pattern.findall(line)) for line in lines)
        if count and "lab" not in file.parts:
            found[str(file.relative_to(paths.root()))] = count
    assert found == RELOADS


def test_a_machine_without_docker_prints_nothing_and_has_none() -> None:
    """pyinfra does not read what is empty; it takes the fact's default."""
    assert DockerAtRisk().default() == []
    assert DockerAtRisk().process([]) == []
