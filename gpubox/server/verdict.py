"""The log verdict: what known lines of SGLang's log mean, and how far a start has come (verdict.yaml)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from gpubox.support.data import Model, read_yaml, validated

Kind = Literal["benign", "slow", "fatal"]


class Known(Model):
    """One known line."""

    id: str
    kind: Kind
    pattern: str
    """Regular expression, searched in the line."""
    cause: str
    cure: str
    source: str
    """Upstream thread, or where it was seen or read."""
    ends: bool = False
    """A start that says this is given up, even if the process stays (ranks that survive wait 300 s: sglang#32021)."""


class Phase(Model):
    """A stage of a start, and what the log says when it begins."""

    name: str
    pattern: str


class Table(Model):
    """All that is known, in order: the first pattern that matches a line counts."""

    phases: list[Phase]
    lines: list[Known] = Field(min_length=1)


@dataclass(frozen=True)
class Finding:
    """A known line that stands in a log."""

    known: Known
    text: str
    """The line as it first stood there."""
    count: int


def table() -> Table:
    """The table of verdict.yaml."""
    return _table()


def judge(log: Iterable[str]) -> list[Finding]:
    """What stands in a log: fatal first, then slow, then benign; within a kind, the particular before the general."""
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for line in log:
        if (known := _known(line)) is not None:
            first.setdefault(known, line.strip())
            counts[known] = counts.get(known, 0) + 1
    found = [Finding(known, first[known.id], counts[known.id]) for known in table().lines if known.id in first]
    kinds = ["fatal", "slow", "benign"]
    return sorted(found, key=lambda finding: kinds.index(finding.known.kind))


def cause(log: Iterable[str]) -> str | None:
    """The most particular fatal line with its cause and cure in one sentence each; None: the log does not say."""
    return next((explained(finding) for finding in judge(log) if finding.known.kind == "fatal"), None)


def explained(finding: Finding) -> str:
    """One finding for people, in three lines."""
    text = finding.text if len(finding.text) <= 300 else finding.text[:297] + "..."
    return f"{text}\n  cause: {finding.known.cause}\n  cure:  {finding.known.cure} ({finding.known.source})"


@cache
def _table() -> Table:
    path = Path(__file__).with_suffix(".yaml")
    return validated(Table, read_yaml(path), str(path))


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(known.id, re.compile(known.pattern)) for known in table().lines]


def _known(line: str) -> str | None:
    if line[:1].isspace():  # source code inside a traceback, not a message
        return None
    return next((name for name, pattern in _patterns() if pattern.search(line)), None)
