"""Programs of the box that end well, badly, never, or are not there."""

import pytest

from gpubox.remote import command
from gpubox.remote.command import CommandError


def test_output() -> None:
    assert command.output(["printf", "a\\377"]) == "a\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("script", "told"),
    [("echo why >&2; exit 3", "exit code 3: why"), ("echo why; exit 1", "exit code 1: why"), ("sleep 9", "timed out")],
)
def test_failures_say_why(script: str, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        command.output(["sh", "-c", script], timeout_s=0.1 if "sleep" in script else 60)


def test_no_such_program() -> None:
    with pytest.raises(CommandError, match="no-such-program"):
        command.output(["no-such-program"])


def test_an_exit_code_may_say_that_there_is_nothing() -> None:
    assert command.output(["sh", "-c", "exit 1"], nothing=1) == ""
    with pytest.raises(CommandError, match="why"):
        command.output(["sh", "-c", "echo why >&2; exit 1"], nothing=1)
