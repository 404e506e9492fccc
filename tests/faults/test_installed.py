"""gpubox as a package in an environment of its own: the project that `gpubox init` makes converges and is tested."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gpubox.inventory import Inventory
from gpubox.support import paths
from tests.deploy import Run, changed


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a clean environment with gpubox and what it needs, not editable."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    uv = str(Path(sys.executable).parent / "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    command = [uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), str(paths.root())]
    subprocess.run(command, check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def project(environment: Path, boxes: Inventory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `gpubox init` makes, with the practice machine's hosts in it."""
    folder = tmp_path_factory.mktemp("project")
    done = run(folder, environment / "gpubox", "init", "boxes")
    assert done.returncode == 0, done.stderr
    (folder / "boxes" / "inventory" / "lab.py").write_text(boxes.path.read_text())
    return folder / "boxes"


def run(cwd: Path, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program of that environment, with nothing of this one's in reach."""
    kept: Mapping[str, str] = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "GPUBOX_ROOT"}}
    return subprocess.run([str(program), *words], cwd=cwd, capture_output=True, text=True, env=kept)


@pytest.mark.ci
def test_it_changes_nothing_on_a_box_that_the_checkout_deployed(
    deploy: Callable[[], Run], environment: Path, project: Path
) -> None:
    deploy().ended_well()
    done = run(project, environment / "pyinfra", "-y", "--json", "inventory/lab.py", "deploy.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert changed(done.stdout) == []
    assert '"name": "Ready | ' in done.stdout  # the last step: all of them ran


@pytest.mark.ci
def test_the_projects_tests_ask_the_box(environment: Path, project: Path) -> None:
    done = run(project, environment / "pytest", "tests/", "--hosts=gpu01", "-k", "test_devices or test_driver")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_other_commands_ask_the_box(environment: Path, project: Path) -> None:
    for words in (("check",), ("doctor", "gpu01"), ("releases", "gpu01"), ("ask", "gpu01")):
        done = run(project, environment / "gpubox", *words)
        assert done.returncode == 0, done.stdout + done.stderr
