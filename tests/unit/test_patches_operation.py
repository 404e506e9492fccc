"""The fact and the operation of source patches: what is read, what is done about it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpubox.facts.patches import PatchStates
from gpubox.operations import patches
from gpubox.remote.patch import Found
from gpubox.support.errors import CannotTellError

NAME = "flashinfer-cutlass-autotune"

CASES = [
    ("gated", False, True, ["apply"]),
    ("absent", False, True, ["apply"]),
    ("unknown", False, True, ["apply"]),
    ("patched", False, True, []),
    ("upstream", False, True, []),
    ("patched", True, True, ["apply"]),
    ("upstream", True, True, []),
    ("patched", False, False, ["revert"]),
    ("gated", False, False, []),
    ("absent", False, False, []),
    ("upstream", False, False, []),
]


@pytest.mark.parametrize(("state", "stale", "present", "expected"), CASES)
def test_what_is_done(
    monkeypatch: pytest.MonkeyPatch, state: str, stale: bool, present: bool, expected: list[str]
) -> None:
    said: list[str] = []
    found = {NAME: Found(state, f"it is {state}", stale_bytecode=stale)}
    monkeypatch.setattr(patches, "host", SimpleNamespace(noop=said.append))
    commands = list(patches.source._inner(venv="/v", wanted=[NAME], look=lambda: found, present=present))
    assert [command.get_raw_value().split()[-2:] for command in commands] == [[action, NAME] for action in expected]
    assert said == ([] if expected else [f"source patch {NAME}: it is {state}"])


def shell(command: str) -> list[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.splitlines()


def test_no_venv_is_absent(tmp_path: Path) -> None:
    fact = PatchStates()
    assert fact.process(shell(fact.command(f"{tmp_path}/it's", [NAME])))[NAME].state == "absent"


def test_a_venv_without_sglang_is_absent(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    fact = PatchStates()
    assert fact.process(shell(fact.command(str(tmp_path), [NAME])))[NAME].why == "sglang is not installed"


@pytest.mark.pain("P81")
def test_a_python_that_does_not_run_cannot_tell(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "bin/python").chmod(0o755)
    fact = PatchStates()
    with pytest.raises(CannotTellError, match="exit code 127"):
        fact.process(shell(fact.command(str(tmp_path), [NAME])))
