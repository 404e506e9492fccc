"""What one check says, and what all of them say together."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["pass", "fail", "warn", "unknown"]
_ORDER: list[Status] = ["fail", "unknown", "warn", "pass"]


@dataclass(frozen=True)
class Check:
    """One line. These names are what programs read from `--json`: they stay."""

    host: str
    id: str
    status: Status
    found: str
    """What was seen; of a check that passes, what it passes on."""
    needed: str = ""
    cure: str = ""

    def as_json(self) -> dict[str, str]:
        """Plain values."""
        return asdict(self)


def exit_code(checks: Iterable[Check]) -> int:
    """0 nothing failed, 1 a check failed, 2 one could not be told (and none failed)."""
    statuses = {check.status for check in checks}
    return 1 if "fail" in statuses else 2 if "unknown" in statuses else 0


def compared(host: str, name: str, wrong: list[str], right: str, cure: str, needed: str = "") -> Check:
    """A check that fails with everything in `wrong`, and passes with `right` when that is empty."""
    if not wrong:
        return Check(host, name, "pass", right)
    return Check(host, name, "fail", "; ".join(wrong), needed, cure)
