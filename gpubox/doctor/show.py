"""Checks for people: one line each, and under what is not right, what is needed and what to do."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gpubox.doctor.check import Check
from gpubox.support.hanging_indent import hanging

_STYLE = {"pass": "green", "fail": "bold red", "warn": "yellow", "unknown": "bold magenta"}


def show(checks: Sequence[Check], console: Console) -> None:
    """Print them, by host as they come, and at last how many there are of each kind."""
    width = max((len(check.id) for check in checks), default=0)
    host = ""
    for check in checks:
        if check.host != host:
            host = check.host
            console.print(Text(host, style="bold"))
        word = check.status.upper() if check.status == "fail" else check.status
        lead = Text.assemble((f"{word:8}", _STYLE[check.status]), check.id)
        hanging(console, [(lead, check.found)], width=width + 10)
        if check.status != "pass":
            rows = [(label, text) for label, text in (("needed", check.needed), ("cure", check.cure)) if text]
            hanging(console, rows, indent=10)
    counted = Counter[str](check.status for check in checks)
    console.print(", ".join(f"{counted[status]} {status}" for status in _STYLE if counted[status]), highlight=False)
