"""The deploy stops on what the rules call an error, before it connects; an override is shown and lets it pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpubox.settings import profile

BOX = """
from gpubox.inventory import checked
data = {{"profile": "recorded/glm-5-lxc", "ssh_hostname": "127.0.0.1", "ssh_port": 9, "overrides": {overrides}}}
gpu_boxes = [("a", data)]
checked(globals())
"""


def deploy(inventory: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "pyinfra"), "-y", str(inventory), "deploy.py"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYINFRA_PROGRESS": "off"})


@pytest.fixture
def required() -> list[str]:
    return profile.load("recorded/glm-5-lxc").required_overrides


def test_a_known_mistake_stops_the_run_before_it_connects(tmp_path: Path, required: list[str]) -> None:
    file = tmp_path / "inventory.py"
    file.write_text(BOX.format(overrides=[]))
    done = deploy(file)
    assert done.returncode == 1
    assert "Connecting" not in done.stderr
    assert all(rule in done.stderr for rule in required)
    assert "Traceback" not in done.stderr


def test_overrides_let_it_pass_and_are_shown(tmp_path: Path, required: list[str]) -> None:
    reason = "kept to compare with, on a box of its own"
    file = tmp_path / "inventory.py"
    file.write_text(BOX.format(overrides=[{"rule": rule, "reason": reason} for rule in required]))
    done = deploy(file)
    assert "Connecting" in done.stderr
    assert done.stderr.count(reason) == len(required)
