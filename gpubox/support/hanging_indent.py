"""Lines for people: a label, and a text that hangs beside it; wrapped for a terminal, one line each in a pipe."""

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text


def hanging(console: Console, rows: Iterable[tuple[str | Text, str]], indent: int = 2, width: int = 0) -> None:
    """Print label and text of each row, the texts below each other.

    + rows: labels with a style of their own, or plain ones, which are dim
    + indent: columns before the labels
    + width: columns of the labels at least; 0: as the longest needs
    """
    listed = [(Text(label, style="dim") if isinstance(label, str) else label, text) for label, text in rows]
    width = max(width, *(len(label) + 2 for label, _ in listed if label), 0)
    for label, text in listed:
        taken = indent + width
        for number, line in enumerate(_wrapped(text, console, taken)):
            lead = Text(" " * indent) + label if number == 0 else Text()
            lead.pad_right(taken - len(lead))
            console.print(lead + Text(line), soft_wrap=True, highlight=False)


def _wrapped(text: str, console: Console, taken: int) -> list[str]:
    # a box's words may hold bytes that are no text, or letters that this terminal has not
    lines = text.encode(console.encoding, "replace").decode(console.encoding).splitlines() or [""]
    if not console.is_terminal:
        return lines
    room = max(console.width - taken, 20)
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    ]
