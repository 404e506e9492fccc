"""Progress for people: one line a step, what it is doing meanwhile, and whether anything changed."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

_QUIET_S = 5.0


class Steps:
    """Prints steps on stderr and remembers which of them changed something."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, highlight=False)
        self.changes: list[str] = []

    @contextmanager
    def step(self, title: str) -> Iterator["Step"]:
        """One step: a spinner on a terminal, a line every five seconds in a log."""
        step = Step(self.console, title)
        with self.console.status(title) as step.status:
            yield step
        seconds = time.monotonic() - step.begun
        mark, after = ("[green]+[/]", f" [dim]{seconds:.1f} s[/]") if step.changed else ("[dim]=[/]", "")
        self.console.print(f"{mark} {title}{': ' + step.note if step.note else ''}{after}", soft_wrap=True)
        if step.changed:
            self.changes.append(title)


class Step:
    """What a running step tells: `changed(note)` when it did something, `say(line)` while it works."""

    def __init__(self, console: Console, title: str) -> None:
        self.begun = self._spoken = time.monotonic()
        self.changed, self.note = False, ""
        self.status = console.status(title)
        self._console, self._title = console, title

    def did(self, note: str = "") -> None:
        """Note that this step changed something."""
        self.changed, self.note = True, note or self.note

    def say(self, line: str) -> None:
        """Show what is going on; in a log at most every five seconds."""
        self.status.update(f"{self._title} [dim]{line[:80]}[/]")
        if not self._console.is_terminal and time.monotonic() - self._spoken > _QUIET_S:
            self._spoken = time.monotonic()
            self._console.print(f"  {self._title}: {line[:100]}", markup=False, soft_wrap=True)
