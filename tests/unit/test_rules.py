"""Every rule by its table (tests/cases/rules): what makes it fire, what does not, and what it cannot judge without."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpubox.catalog import release
from gpubox.hosts import Box
from gpubox.rules.context import Context
from gpubox.rules.facts import BoxFacts
from gpubox.rules.finding import Told, UnknownError
from gpubox.rules.registry import rules
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings
from gpubox.settings.profile import Profile
from gpubox.settings.stack import Stack

CASES = Path(__file__).parent.parent / "cases" / "rules"
LACK: dict[str, dict[str, Any]] = {
    "release": {"stack": {"sglang": "9.9.9"}},
    "card": {"profile": {"cards": None}},
    "model": {"profile": {"model": {}}},
    "facts": {"profile": {"runs_on": []}, "facts": {}},
}


def tables() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(CASES.glob("*.yaml")):
        for name, cases in yaml.safe_load(path.read_text()).items():
            yield from ((name, case) for case in cases)


def context(case: dict[str, Any]) -> Context:
    lack = LACK.get(case.get("lack", ""), {})
    merged = {**case, **{key: {**value, **case.get(key, {})} for key, value in lack.items()}}
    raw = profile.load(case.get("base", "glm-5-nvfp4")).model_dump()
    raw.update(merged.get("profile", {}))
    raw["flags"] = {k: v for k, v in {**raw["flags"], **merged.get("flags", {})}.items() if v is not None}
    raw["environment"] = {**raw["environment"], **merged.get("environment", {})}
    wish = Profile.model_validate(raw)
    base = stack.load(wish.stack)
    on = Stack.model_validate({**base.model_dump(), **merged.get("stack", {})})
    settings = BoxSettings.model_validate({"profile": wish.name, **merged.get("settings", {})})
    facts = BoxFacts.model_validate(merged["facts"]) if "facts" in merged else None
    known = release.load(on.sglang) if on.sglang in release.versions() else None
    known = known.model_copy(update=case["release"]) if known and "release" in case else known
    pins = dict(base.pins) if on.sglang == base.sglang else {}
    return Context(Box("box", settings, wish, on), facts, known, {**pins, **merged.get("pins", {})})


@pytest.mark.parametrize(
    ("name", "case"),
    [*tables()],
    ids=lambda value: value if isinstance(value, str) else value["name"].replace(" ", "-"),
)
def test_a_case(name: str, case: dict[str, Any]) -> None:
    rule = rules()[name]
    if case.get("lack"):
        with pytest.raises(UnknownError) as lacking:
            list(rule.judge(context(case)))
        assert lacking.value.need == case["lack"]
        return
    told: list[Told] = list(rule.judge(context(case)))
    assert len(told) == case.get("fires", 0), told
    for one in told:
        assert (one.severity or rule.severity) == case.get("severity", rule.severity)
        assert case.get("says", "") in f"{one.found} | {one.needed} | {one.todo}"


def test_every_rule_fires_stays_quiet_and_lacks_in_the_tables() -> None:
    seen = {name: {"fires": 0, "quiet": 0, "lack": set()} for name in rules()}
    for name, case in tables():
        seen[name]["lack"] |= {case["lack"]} if case.get("lack") else set()  # type: ignore[operator]  # a set
        seen[name]["fires" if case.get("fires") else "quiet"] += 0 if case.get("lack") else 1  # type: ignore[operator]  # a number
    for name, rule in rules().items():
        assert seen[name]["fires"], f"{name} has no case that fires"
        assert seen[name]["quiet"], f"{name} has no case that is quiet"
        assert seen[name]["lack"] == set(rule.needs), f"{name}: what it may lack is not what its cases show"


def test_every_rule_has_a_title_evidence_and_a_sentence() -> None:
    for rule in rules().values():
        assert rule.title.endswith(".")
        assert rule.evidence
        assert (rule.judge.__doc__ or "").strip()
