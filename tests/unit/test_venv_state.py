"""What is seen of a venv: by the script that looks into one, and by the fact, through a real shell."""

import subprocess
from pathlib import Path

import pytest

from gpubox.facts.venv import PythonEnv, Venv, parse
from gpubox.remote import venv_state
from gpubox.support.errors import CannotTellError
from tests.unit.test_facts import printed

IDNA, TORCH = "idna-3.20.dist-info", "nvidia_ml_py-13.0+cpu.dist-info"


@pytest.fixture
def venv(tmp_path: Path, remote_python: str) -> Path:
    """A venv whose Python runs, with two packages."""
    path = tmp_path / "env"
    subprocess.run([remote_python, "-m", "venv", "--without-pip", str(path)], check=True)
    site = next(path.glob("lib/python3.*/site-packages"))
    for folder in (IDNA, TORCH):
        (site / folder).mkdir()
        (site / folder / "METADATA").write_text(f"Name: {folder}\n")
        (site / folder / "RECORD").write_text("")
    venv_state.made(path)
    venv_state.installed(path, ["idna", "nvidia-ml-py"])
    return path


def damage(venv: Path, folder: str) -> None:
    file = next(venv.glob(f"lib/python3.*/site-packages/{folder}/METADATA"))
    file.write_text(file.read_text() + "x")


def seen(venv: Path) -> Venv:
    command = PythonEnv().command(path=str(venv), beside="/nowhere", paths=["/nowhere"])
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    return PythonEnv().process(done.stdout.splitlines()).venv


def test_whole(venv: Path, remote_python: str) -> None:
    state = seen(venv)
    assert (state.kind, state.implementation, state.changed, state.config_changed) == ("whole", "CPython", {}, False)
    said = subprocess.run([remote_python, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == f"Python {state.python}"
    assert state.packages == {"idna": "3.20", "nvidia-ml-py": "13.0+cpu"}


def test_every_change_of_metadata_is_seen(venv: Path) -> None:
    site = next(venv.glob("lib/python3.*/site-packages"))
    damage(venv, IDNA)
    (site / TORCH / "RECORD").unlink()
    (site / "new-1.dist-info").mkdir()
    (venv / "pyvenv.cfg").unlink()
    state = seen(venv)
    assert state.changed == {"idna": [IDNA], "nvidia-ml-py": [TORCH], "new": ["new-1.dist-info"]}
    assert state.config_changed


def test_remembering_one_thing_does_not_vouch_for_another(venv: Path) -> None:
    damage(venv, IDNA)
    damage(venv, TORCH)
    venv_state.made(venv)
    venv_state.installed(venv, ["nvidia-ml-py"])
    assert seen(venv).changed == {"idna": [IDNA]}


def test_a_marker_that_cannot_be_read_vouches_for_nothing(venv: Path) -> None:
    (venv / venv_state.MARKER).write_text("{")
    state = seen(venv)
    assert state.kind == "whole"
    assert sorted(state.changed) == ["idna", "nvidia-ml-py"]
    assert state.config_changed


@pytest.mark.pain("P37")
def test_what_is_no_venv_of_ours(venv: Path, tmp_path: Path) -> None:
    assert seen(tmp_path / "nothing").kind == "absent"
    assert seen(tmp_path).kind == "foreign"
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert seen(tmp_path / "dangling").kind == "foreign"
    (venv / "bin" / "python").unlink()
    assert seen(venv).kind == "broken"


def test_a_python_that_is_killed_is_no_answer(venv: Path) -> None:
    python = venv / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    with pytest.raises(CannotTellError, match="venv: exit code 137"):
        seen(venv)


@pytest.mark.parametrize("answer", ["", "absent foreign", "{}"])
def test_no_answer_is_not_taken_for_one(answer: str) -> None:
    with pytest.raises(CannotTellError, match="the venv: cannot be read"):
        parse(answer)


def test_uv_and_files(tmp_path: Path) -> None:
    answer = printed(
        uv="uv 0.13.9 (x86_64-unknown-linux-gnu)\n", files="absent\t\t\t/x\n", venv="absent\n", beside="broken\n"
    )
    state = PythonEnv().process(answer)
    assert (state.uv, state.files["/x"].kind) == ("0.13.9", "absent")
    assert (state.venv, state.beside) == (Venv("absent"), Venv("broken"))
