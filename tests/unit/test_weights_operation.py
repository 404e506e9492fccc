"""The fact and the operation of weights: what is read, what is done about it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import StringCommand

from gpubox.facts.weights import Weights
from gpubox.operations import weights
from gpubox.remote.weights_cache import Arguments
from gpubox.support.errors import CannotTellError

ARGUMENTS = Arguments("maker/it's", "a" * 40, cache="/nowhere")


def read(venv: Path) -> dict[str, Any]:
    fact = Weights()
    shell = ["sh", "-c", fact.command(str(venv), ARGUMENTS).get_raw_value()]
    return fact.process(subprocess.run(shell, capture_output=True, text=True, check=True).stdout.splitlines())


def test_no_venv(tmp_path: Path) -> None:
    assert read(tmp_path) == {"event": "incomplete", "lacks": ["(there is no venv to look with)"]}


def test_a_look(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    assert read(tmp_path) == {"event": "incomplete", "lacks": ["(never fetched by gpubox)"]}


def test_what_cannot_be_told() -> None:
    with pytest.raises(CannotTellError, match="no such library"):
        Weights().process(['{"event": "cannot-tell", "cause": "no such library", "todo": "x"}'])


@pytest.mark.parametrize("event", ["complete", "incomplete"])
def test_what_is_done(monkeypatch: pytest.MonkeyPatch, event: str) -> None:
    done: list[str] = []

    def shown(command: StringCommand, what: str) -> str:
        assert command.get_raw_value().endswith(" fetch text")
        return what

    monkeypatch.setattr(weights, "shown", shown)
    monkeypatch.setattr(weights, "host", SimpleNamespace(noop=done.append))
    commands = list(weights.fetched._inner(venv="/v", arguments=ARGUMENTS, look=lambda: {"event": event, "path": "/p"}))
    if event == "complete":
        assert (commands, done) == ([], ["maker/it's is whole at /p"])
    else:
        assert (commands, done) == ([f"fetching maker/it's at {'a' * 40}"], [])
