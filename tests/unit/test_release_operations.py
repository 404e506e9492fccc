"""State of a box in, what a release needs out; a second run needs nothing."""

from dataclasses import replace
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand
from pyinfra.api.state import StateStage

from gpubox.facts.release import Releases
from gpubox.facts.service import ServiceState
from gpubox.facts.venv import Venv
from gpubox.operations import ready as operations
from gpubox.operations import venv
from gpubox.operations.ready import Wanted, ready
from gpubox.operations.venv import Wish, in_place

SETTLED = Releases("new", "old", "new", "new", True, ({"digest": "new", "verified": "2026"}, {"digest": "old"}))
PROPERTIES = {"UnitFileState": "enabled", "NeedDaemonReload": "no"}
WANTED = Wanted("sglang.service", "new", "/root/ml-env", {"url": "http://127.0.0.1:30000"})
WISH = Wish("/venvs/v", "3.11", {"idna": "3.20"})
GOOD = Venv("whole", "3.11.2", "CPython", {"idna": "3.20"})


def service(**changes: Any) -> ServiceState:
    return ServiceState({}, PROPERTIES, replace(SETTLED, **changes))


@pytest.mark.parametrize(
    ("changes", "event", "waits"),
    [
        ({}, "ready", False),
        ({}, "failed", True),
        ({"releases": ({"digest": "new", "verified": None},)}, "ready", True),
        ({"current": "old"}, "ready", True),
    ],
)
def test_ready_needs_an_answer_and_a_release_found_good(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], event: str, waits: bool
) -> None:
    assert todo(monkeypatch, changes, event) == (["_conclude"] if waits else [])


def test_what_a_refused_run_left_goes_once_the_wished_release_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert todo(monkeypatch, {"superfluous": ("refused",)}, "ready") == ["_tidy"]
    assert todo(monkeypatch, {"superfluous": ("refused",)}, "failed") == ["_conclude"]


def todo(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], event: str) -> list[str]:
    monkeypatch.setattr(operations, "host", type("Host", (), {"noop": lambda *_: None})())
    commands = list(ready._inner(wanted=WANTED, look=lambda: service(**changes), answer=lambda: {"event": event}))
    return [command.function.__name__ for command in commands if isinstance(command, FunctionCommand)]


@pytest.mark.parametrize(
    ("found", "met"),
    [
        (GOOD, True),
        (Venv("absent"), False),
        (replace(GOOD, python="3.12.1"), False),
        (replace(GOOD, packages={}), False),
        (replace(GOOD, packages={"idna": "3.20", "cowsay": "6"}), False),
        (replace(GOOD, changed={"idna": ["idna-3.20.dist-info"]}), False),
        (replace(GOOD, config_changed=True), False),
        (replace(GOOD, damaged={"lib/x.py": "emptied"}, damaged_count=1), False),
    ],
)
def test_a_venv_is_whole_or_built_anew(found: Venv, met: bool) -> None:
    assert WISH.is_met_by(found) is met


def placed(monkeypatch: pytest.MonkeyPatch, is_whole: bool, beside: Venv) -> list[str]:
    monkeypatch.setattr(venv, "state", type("State", (), {"current_stage": StateStage.Execute})())
    found = in_place._inner(wish=WISH, is_whole=lambda: is_whole, present=lambda: Venv("absent"), look=lambda: beside)
    return [c.get_raw_value() for c in found]


def test_a_venv_gets_its_name_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert placed(monkeypatch, True, Venv("absent")) == []
    (refused,) = placed(monkeypatch, False, replace(GOOD, packages={}))
    assert refused.endswith("exit 1")
    (command,) = placed(monkeypatch, False, GOOD)
    remembered, _, then = command.partition(" && ")
    assert remembered.endswith("venv_state /venvs/v.new finished")
    assert then == (
        "sync -f /venvs/v.new && rm -rf /venvs/.v.gpubox-old && "
        "{ test ! -e /venvs/v || mv -T /venvs/v /venvs/.v.gpubox-old ; } && mv -T /venvs/v.new /venvs/v"
    )
