"""Commands that show what they do: run as the operation wants them, and their failure is one."""

from typing import Any, ClassVar, cast

import gevent
import pytest
from pyinfra.api import Host, State, StringCommand

from gpubox.operations import progress


class FakeHost:
    """A host that answers without one."""

    print_prefix = "[box] "
    current_op_global_arguments: ClassVar = {"_sudo": True, "_timeout": 9, "name": "not for the connector"}

    def __init__(self, succeeds: bool, waits: bool = False) -> None:
        self.succeeds, self.waits, self.ran = succeeds, waits, list[tuple[str, Any]]()

    def run_shell_command(self, command: StringCommand, **arguments: Any) -> tuple[bool, None]:
        if self.waits:
            gevent.sleep(0)  # lets the heart beat once, whatever the clock says
            gevent.sleep(0)
        self.ran.append((command.get_raw_value(), arguments))
        return self.succeeds, None


def run(host: FakeHost) -> object:
    command = progress.shown(StringCommand("make"), "making")
    return command.execute(cast("State", None), cast("Host", host), {})


def test_runs_as_the_operation_wants() -> None:
    host = FakeHost(succeeds=True)
    assert run(host) is True
    assert host.ran == [("{ make ; } 2>&1", {"print_output": True, "_sudo": True, "_timeout": 9})]


def test_failure_is_failure() -> None:
    assert run(FakeHost(succeeds=False)) is False


def test_the_heart_beats_while_a_command_is_silent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "BEAT_S", 0)
    with caplog.at_level("INFO", logger="pyinfra"):
        run(FakeHost(succeeds=True, waits=True))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "[box] making ..."
    assert "[box] making, 0 s" in lines
    assert lines[-1].startswith("[box] making: done after ")
