"""What the runner says: one JSON object a line, on standard output and, for a cut connection, in a file."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from pathlib import Path
from types import FrameType
from typing import IO

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(Exception):  # noqa: N818 - not an error: somebody or something ends the sweep
    """The sweep ends here; the reason goes into the last event."""

    def __init__(self, verdict: str, problem: str) -> None:
        super().__init__(problem)
        self.verdict, self.problem = verdict, problem


class Events:
    """Writes events. A full disk ends the sweep, but everything said so far has reached the other side."""

    def __init__(self, folder: Path) -> None:
        self._out = _own_output()
        self._file = (folder / "events.jsonl").open("x", encoding="utf-8")

    def say(self, event: str, **more: object) -> None:
        """One event. `progress` is for the eye only and not kept in the file."""
        line = json.dumps({"event": event, "at": round(time.time(), 3), **more}) + "\n"
        self._out.write(line)
        self._out.flush()
        if event == "progress":
            return
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            if event != "end":
                raise Stop("failed", f"cannot write on the box: {error.strerror} ({self._file.name})") from error


def _own_output() -> IO[str]:
    """Standard output for events alone: whatever libraries print there goes to standard error from now on."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def check_interrupted() -> None:
    """Raises Stop when whoever started us has gone: our standard input is his life line and carries nothing else."""
    readable, _, _ = select.select([0], [], [], 0)
    if readable and os.read(0, 1) == b"":
        raise Stop("interrupted", "stopped from outside: Ctrl-C, or the connection went away")


def stop_on_signal(signum: int, _frame: FrameType | None) -> None:
    """A handler for SIGINT, SIGTERM and SIGHUP. A second one must not disturb the tidying up after the first."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise Stop("interrupted", f"stopped by signal {signum}")
