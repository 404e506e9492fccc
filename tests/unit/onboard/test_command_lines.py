"""Public command lines (tests/cases/adoption): adopted, written, read, judged, and as a command line again."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpubox import rules
from gpubox.catalog import release
from gpubox.hosts import Box
from gpubox.onboard import adoption
from gpubox.onboard.adoption import Adopted
from gpubox.onboard.state import Server
from gpubox.remote import handover, servers
from gpubox.remote.launchers import launch
from gpubox.server import command
from gpubox.server.service import service_of
from gpubox.settings import stack
from gpubox.settings.host import BoxSettings
from gpubox.settings.profile import Profile
from gpubox.support.data import validated
from gpubox.support.errors import GpuboxError

FILE = Path(__file__).parents[2] / "cases/adoption/command-lines.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load(FILE.read_text())
GOOD = [case for case in CASES if "refused" not in case]
REFUSED = [case for case in CASES if "refused" in case]
TORCH = {"0.5.9": "2.9.1", "0.5.23": "2.14.1"}


def server(case: dict[str, Any]) -> Server:
    release_of = case["sglang"]
    return Server(
        pid=812,
        argv=shlex.split(case["argv"]),
        environment=case.get("environment", {}),
        secret_flags=case.get("secret_flags", []),
        secret_variables=[],
        unit="",
        folder="/home/jo",
        venv="/home/jo/venv",
        sglang=release_of,
        torch=case.get("torch", TORCH[release_of]),
        relative=tuple(case.get("relative", ())),
        source=case.get("source", ""),
        config=[tuple(pair) for pair in case["config"]] if "config" in case else None,
        process=case.get("process", {}),
    )


def written(case: dict[str, Any]) -> tuple[Adopted, Box]:
    adopted = adoption.adopt(server(case))
    count, card = case["cards"]
    text = adoption.profile_text(adopted, "as it ran", "throughput", "2026-11-29", [card] * count)
    values: dict[str, Any] = yaml.safe_load(text)
    profile = validated(Profile, {"name": "adopted", **values}, "adopted")
    settings = BoxSettings(profile="adopted", exposure="private-network")
    return adopted, Box("box", settings, profile, stack.load(profile.stack))


def ids(case: dict[str, Any]) -> str:
    return str(case["from"])


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_it_is_seen(case: dict[str, Any]) -> None:
    assert servers._is_server(shlex.split(case["argv"]), "/home/jo")


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_the_command_line_comes_back(case: dict[str, Any]) -> None:
    adopted, box = written(case)
    words = command.flags(box.profile.flags)
    started = server(case)
    given = shlex.split(case["back"]) if "back" in case else _flags(started)
    assert handover.settings(words) == handover.settings(given)
    if "back" not in case and not case.get("notes"):
        assert words == given
    assert box.profile.python_args == adopted.python_args


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_no_rule_stops_what_ran(case: dict[str, Any]) -> None:
    _, box = written(case)
    found = rules.check(box)
    wrong = [f"{one.rule}: {one.found}" for one in found if one.severity == "error"]
    assert wrong == []
    assert box.profile.adopted is not None
    assert rules.exit_code(found) == 0 or not box.profile.adopted.sglang  # sources of ones own were not seen before
    assert not {"history-profile", "expandable-segments", "tensor-parallel-cards"} & {one.rule for one in found}
    service_of(box)  # it can be written as a unit


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_cards_are_counted_as_sglang_does(case: dict[str, Any]) -> None:
    adopted, box = written(case)
    assert adopted.cards == case["uses"]
    assert box.profile.cards is None or box.profile.cards.count == case["uses"]


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_what_is_not_as_it_was_is_said_and_nothing_else(case: dict[str, Any]) -> None:
    adopted, box = written(case)
    notes = " | ".join(adopted.notes)
    dropped = case.get("drops", [])
    assert {*case.get("environment", {})} - {*box.profile.environment} == {*dropped}
    for word in [*dropped, *case.get("notes", [])]:
        assert word in notes
    assert bool(adopted.notes) == bool(dropped or case.get("notes")), notes


@pytest.mark.parametrize("case", REFUSED, ids=ids)
def test_what_gpubox_cannot_serve_is_refused_with_the_reason(case: dict[str, Any]) -> None:
    with pytest.raises(GpuboxError) as refused:
        adoption.adopt(server(case))
    assert case["refused"] in refused.value.message


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_the_release_of_the_case_takes_its_flags(case: dict[str, Any]) -> None:
    known = release.load(case["sglang"])
    adopted, _ = written(case)
    assert [name for name in adopted.flags if known.find(name) is None] == []


def test_there_are_many() -> None:
    assert len(CASES) > 50


def _flags(one: Server) -> list[str]:
    started = launch(one.argv, one.folder)
    assert started is not None
    return started.words
