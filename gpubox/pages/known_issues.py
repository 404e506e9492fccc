"""Public problems of GPU boxes (gpubox/catalog/pains.yaml), and what shows that something is done about each.

Tests say it of themselves, `@pytest.mark.pain("P21")`: their source is read, nothing is imported. Rules say it by
evidence: the thread of the problem is theirs too.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from gpubox.rules.registry import Rule, rules
from gpubox.support import paths
from gpubox.support.data import Model, read_yaml, validated
from gpubox.support.errors import GpuboxError

KINDS = {"faults": "practice machine", "acceptance": "asked of the host", "unit": "table"}
"""Folder below tests/ -> how its tests show what they show."""
_THREAD = re.compile(r"/(issues|pull)/\d+$")


class Pain(Model):
    """One problem."""

    title: str
    """In our words."""
    symptom: str
    """What people paste or see."""
    source: str = Field(pattern="^https://")
    """One public page."""
    note: str = ""
    """What no test shows here, and why."""
    rules: list[str] = Field(default_factory=list)
    """Rules of `gpubox check` that cover it without naming the same thread as evidence."""


class Pains(Model):
    """The whole file: subject -> id -> problem."""

    subjects: dict[str, dict[str, Pain]]


@dataclass(frozen=True)
class Mark:
    """What one test says that it shows."""

    pains: tuple[str, ...]
    kind: str
    file: str
    """Below the checkout."""
    test: str
    """The function; empty: the whole file."""


@cache
def subjects() -> dict[str, dict[str, Pain]]:
    """Subject -> id -> problem, as they stand in the file. Errors name the key that cannot be used."""
    path = Path(__file__).parent.parent / "catalog" / "pains.yaml"
    raw: dict[str, Any] = {"subjects": read_yaml(path)}
    return validated(Pains, raw, path.name).subjects


def pains() -> dict[str, Pain]:
    """Id -> problem."""
    return {name: pain for group in subjects().values() for name, pain in group.items()}


def marks(root: Path) -> list[Mark]:
    """Every mark below `root`/tests, by file. Error: an id that is not written out."""
    found: list[Mark] = []
    for folder, kind in KINDS.items():
        for path in sorted((root / "tests" / folder).rglob("test_*.py")):
            found += _marks(path, path.relative_to(root).as_posix(), kind)
    return found


def rules_for(pain: Pain) -> list[Rule]:
    """The rules that name the problem's thread as evidence, and those that the problem names."""
    thread = pain.source if _THREAD.search(pain.source) else None
    return [r for r in rules().values() if r.id in pain.rules or thread in {item.split()[0] for item in r.evidence}]


def lines() -> list[str]:
    """docs/pains.md without its first line."""
    by_pain: dict[str, list[Mark]] = {name: [] for name in pains()}
    for mark in marks(paths.root()):
        for name in mark.pains:
            by_pain.setdefault(name, []).append(mark)
    text = ["# Public problems, and what shows that they are dealt with", "", *_INTRO, "", *_summary(by_pain)]
    for subject, group in subjects().items():
        text += ["", f"## {subject}"]
        for name, pain in group.items():
            text += ["", *_pain(name, pain, by_pain[name])]
    return text


def _marks(path: Path, file: str, kind: str) -> Iterator[Mark]:
    text = path.read_text()
    if "mark.pain(" not in text:  # parsing is what takes time
        return
    for statement in ast.parse(text).body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pain":
                yield Mark(_ids(node, file), kind, file, getattr(statement, "name", ""))


def _ids(call: ast.Call, file: str) -> tuple[str, ...]:
    ids = tuple(arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
    if len(ids) != len(call.args) or not ids or call.keywords:
        raise GpuboxError(f"{file}:{call.lineno}: {ast.unparse(call)}", 'ids written out, as pain("P21")')
    return ids


_INTRO = [
    "Each test says itself which problem it shows prevented, detected or repaired (`@pytest.mark.pain`), and how:",
    "",
    "- practice machine: a run on containers of `gpubox lab`, where only the card is a stand-in;",
    "- asked of the host: a question to a deployed box, which fails where the problem is there;",
    "- table: cases in and decisions out, without a host.",
    "",
    "A rule of `gpubox check` is listed where the problem's thread is its evidence too, or where it is about the same;",
    "its cases are a table (`tests/cases/rules`). A note says what is not shown here.",
]


def _summary(by_pain: dict[str, list[Mark]]) -> list[str]:
    counts = [(kind, sum(any(m.kind == kind for m in found) for found in by_pain.values())) for kind in KINDS.values()]
    ruled = sum(bool(rules_for(pain)) for pain in pains().values())
    silent = [name for name, pain in pains().items() if not by_pain[name] and not rules_for(pain)]
    shown = ", ".join(f"{kind} {count}" for kind, count in [*counts, ("rule", ruled)])
    return [f"Of {len(pains())} problems: {shown}. Shown by none: {', '.join(silent) or 'no one'}."]


def _pain(name: str, pain: Pain, found: list[Mark]) -> list[str]:
    text = [f"### {name}: {pain.title}", "", f"`` {pain.symptom} `` ([source]({pain.source}))", ""]
    for kind in KINDS.values():
        files = dict.fromkeys(mark.file for mark in found if mark.kind == kind)
        text += [f"- {kind}: `{file}` {_tests(file, found)}".rstrip() for file in files]
    text += [f"- rule: [`{rule.id}`](rules.md#{rule.id}-{rule.severity})" for rule in rules_for(pain)]
    return [*text, f"- note: {pain.note}"] if pain.note else text


def _tests(file: str, found: list[Mark]) -> str:
    return ", ".join(f"`{mark.test}`" for mark in found if mark.file == file and mark.test)
