"""The server under test behind one small interface: a systemd service, our own child, or something elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Protocol

from gpubox.remote import command, endpoint, orphans, proc, secrets
from gpubox.remote.bench import recorded
from gpubox.remote.bench.events import Stop, check_interrupted
from gpubox.remote.bench.plan import Plan
from gpubox.remote.command import CommandError
from gpubox.remote.endpoint import NoAnswer

CURRENT = Path("/var/lib/gpubox/current")
"""Link to the release that gpubox's own service runs from."""


class Server(Protocol):
    """What the sweep needs of a server."""

    def problem(self) -> str | None:
        """Why it no longer runs as it did at the start; None: it does, as far as can be seen from here."""

    def describe(self) -> dict[str, Any]:
        """Its `argv` and `environment` without secrets; empty where they cannot be seen from here."""

    def log(self) -> list[str]:
        """The last lines of its log."""

    def stop(self) -> None:
        """Ends it, if it is ours."""


def server_of(plan: Plan, folder: Path) -> Server:
    """The right one for the plan; a child is started."""
    if plan.command:
        return Child(plan.command, folder / "server.log")
    return Service(plan.unit) if plan.unit else Elsewhere()


def wait_until_ready(plan: Plan, server: Server) -> float:
    """Seconds until /health answered. Raises Stop when the server ends, or does not answer within its time."""
    began = time.monotonic()
    limit_s = plan.start_timeout_s if plan.command else 30
    while True:
        check_interrupted()
        try:
            endpoint.get(f"{plan.url}/health", plan.api_key, 5)
            return round(time.monotonic() - began, 1)
        except NoAnswer as error:
            said = error
        if problem := server.problem():
            raise Stop("failed", f"{problem} before it answered")
        if time.monotonic() - began > limit_s:
            raise Stop("cannot tell", f"{plan.url}/health did not answer for {limit_s:.0f} s: {said}")
        time.sleep(0.5)


class Child:
    """A server that we start and end."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command, self._log = command, log
        orphans.adopt()
        with log.open("xb") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def problem(self) -> str | None:
        """Its exit code, once it has ended."""
        code = self._process.poll()
        if code is None:
            return None
        self._end_rest()
        return f"the server ended with exit code {code}"

    def describe(self) -> dict[str, Any]:
        """As it was started."""
        return _of_process(self._process.pid, self._command)

    def log(self) -> list[str]:
        """The end of server.log."""
        return recorded.log(self._log.read_text(errors="replace")[-8000:].splitlines()[-20:])

    def _end_rest(self) -> None:
        """What outlives a launcher that was killed (gpubox.remote.orphans)."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM to its whole session, SIGKILL after 20 s."""
        for how, patience_s in ((signal.SIGTERM, 20), (signal.SIGKILL, 20)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)


class Service:
    """A systemd unit, which we only watch."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._first = self._show()
        if self._first.get("ActiveState") != "active":
            raise Stop("cannot tell", f"{unit} is {self._first.get('ActiveState', 'unknown')}, not active")

    def problem(self) -> str | None:
        """A state or a main process other than at the start."""
        now = self._show()
        if now == self._first:
            return None
        state = f"{now.get('ActiveState')}, result {now.get('Result')}"
        return f"the server ended during the measurement ({self._unit} is now {state}, {now.get('NRestarts')} restarts)"

    def describe(self) -> dict[str, Any]:
        """Of the running main process, and the release that it was started from."""
        found = _of_process(int(self._first["MainPID"]), [])
        return {**found, "release": CURRENT.resolve().name} if CURRENT.is_symlink() else found

    def log(self) -> list[str]:
        """The end of the unit's journal."""
        words = ["journalctl", "--unit", self._unit, "--lines=20", "--output=cat", "--no-pager"]
        try:
            return recorded.log(command.output(words).splitlines())
        except CommandError as error:
            raise Stop("cannot tell", str(error)) from error

    def stop(self) -> None:
        """Nothing: it goes on serving."""

    def _show(self) -> dict[str, str]:
        try:
            return command.properties(self._unit, "ActiveState", "Result", "MainPID", "NRestarts")
        except CommandError as error:
            raise Stop("cannot tell", str(error)) from error


class Elsewhere:
    """A server of which only the URL is known."""

    def problem(self) -> str | None:
        """Cannot be seen from here; failing requests show it."""
        return None

    def describe(self) -> dict[str, Any]:
        """Nothing is visible."""
        return {}

    def log(self) -> list[str]:
        """Nothing is visible."""
        return []

    def stop(self) -> None:
        """Nothing: it is not ours."""


def _of_process(pid: int, started: list[str]) -> dict[str, Any]:
    process = proc.process(pid)
    variables = recorded.environment(proc.variables(process))
    return {"argv": secrets.argv(started or proc.words(process)), "environment": variables}
