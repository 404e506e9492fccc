"""Scripts on a host that has no ssh of ours: their events come when they have ended."""

from types import SimpleNamespace
from typing import Any

from pyinfra.api import StringCommand

from gpubox.operations import onbox, watch


def host(lines: list[str]) -> Any:
    output = SimpleNamespace(stdout_lines=lines, stderr_lines=[])
    return SimpleNamespace(
        connector=SimpleNamespace(host="gpu01"),
        current_op_global_arguments={},
        run_shell_command=lambda *_, **__: (True, output),
    )


def test_events_without_ssh() -> None:
    lines = ['{"event": "phase", "phase": "load"}', "noise", '{"event": "ready"}']
    assert [e["event"] for e in onbox.events(host(lines), StringCommand("probe"))] == ["phase", "ready"]


class Connector:
    """Can be kept by a weak reference, as pyinfra's hosts can."""


def test_nobody_measures_without_ssh() -> None:
    here = host([])
    here.connector.host = Connector()
    watch.begin(here, [])
    assert watch.end(here) is None
