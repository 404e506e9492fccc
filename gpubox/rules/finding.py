"""What a rule says, and what it says when it cannot tell."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info", "unknown"]
"""`unknown`: could not be judged; exit code 2 where nothing worse was found."""

Need = Literal["release", "card", "model", "facts"]
"""What a rule may lack: the catalogue's release, card or model, or facts from the box."""


CATALOGUE: tuple[Need, ...] = ("release", "card", "model")
"""All that only the catalogue can tell."""


@dataclass(frozen=True)
class Told:
    """One thing that a rule found wrong."""

    found: str
    needed: str
    todo: str
    severity: Severity | None = None
    """None: the rule's own."""


@dataclass(frozen=True)
class Finding:
    """One thing that a rule found wrong with one host."""

    rule: str
    severity: Severity
    host: str
    found: str
    needed: str
    todo: str
    evidence: tuple[str, ...]
    overridden: str | None = None
    """The reason of the person who overrode the rule; the severity is then one step lower."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, host in every record."""
        return {**asdict(self), "evidence": list(self.evidence)}


class UnknownError(Exception):
    """A rule lacks something to judge by."""

    def __init__(self, need: Need, found: str, todo: str) -> None:
        self.need, self.found, self.todo = need, found, todo
        super().__init__(found)
