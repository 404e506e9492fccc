"""Checks for people: one line each, and under what is not right, what is needed and what to do."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gpubox.doctor.check import Check
from gpubox.onboard.show import hanging

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
        lead = Text(f"  {word:8}", style=_STYLE[check.status]) + Text(f"{check.id:{width}}  ", style="not dim")
        _lines(console, lead, check.found)
        rows = [(label, text) for label, text in (("needed", check.needed), ("cure", check.cure)) if text]
        if check.status != "pass":
            hanging(console, rows, indent=10)
    counted = Counter[str](check.status for check in checks)
    console.print(", ".join(f"{counted[status]} {status}" for status in _STYLE if counted[status]), highlight=False)


def _lines(console: Console, lead: Text, text: str) -> None:
    """The first line of the text beside its lead; more lines hang."""
    first, *rest = text.splitlines() or [""]
    console.print(lead + Text(first, style="not bold"), soft_wrap=not console.is_terminal, highlight=False)
    hanging(console, [("", line.strip()) for line in rest], indent=10)
