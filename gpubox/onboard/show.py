"""Lines for people: a label, and a text that hangs beside it; wrapped for a terminal, one line each in a pipe."""

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text


def hanging(console: Console, rows: Iterable[tuple[str, str]], indent: int = 2, style: str = "dim") -> None:
    """Print label and text of each row, the texts below each other.

    + indent: columns before the labels
    """
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0) + (2 if any(label for label, _ in listed) else 0)
    for label, text in listed:
        first = " " * indent + label.ljust(width)
        for number, line in enumerate(_wrapped(text, console, len(first))):
            lead = Text(first if number == 0 else " " * len(first), style=style)
            console.print(lead + Text(line, style="not dim"), soft_wrap=True, highlight=False)


def _wrapped(text: str, console: Console, taken: int) -> list[str]:
    if not console.is_terminal:
        return [text]
    room = max(console.width - taken, 20)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
