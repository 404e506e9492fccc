"""Send the runner, follow its events, end it. It lives as long as its standard input stays open."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpubox.bench.place import Place
from gpubox.remote.bench.plan import Plan
from gpubox.support import payload
from gpubox.support.errors import GpuboxError


class Runner:
    """The runner at work in some place."""

    def __init__(self, place: Place, plan: Plan, errors: Path) -> None:
        """Starts it; what it prints besides events goes to the new file `errors`."""
        words = place.command(payload.words("bench.main", python=place.python, flags=()))
        try:
            with errors.open("xb") as err:
                self._process = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True
                )
        except OSError as error:
            raise GpuboxError(f"cannot start {words[0]}: {error.strerror}", "a program that runs here") from error
        self._send(asdict(plan))

    def events(self) -> Iterator[dict[str, Any]]:
        """Its events until it ends; may be asked again to hear the rest."""
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event

    def stop(self) -> None:
        """Asks it to end by closing its standard input; its last events are still to come."""
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()

    def end(self) -> None:
        """Makes sure that it has ended: it gets 60 s to stop its own child."""
        self.stop()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it ended already; its own words are in `errors`
            if self._process.stdin:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()
