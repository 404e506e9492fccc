"""Wait on the box until the model server answers, or say why it does not. One file, standard library only.

Arguments are one JSON object on stdin (`Arguments` below); events come out as JSON lines, each with `event` and `at_s`:
`phase`, `answer`, and at the end `ready` or `failed` (with `cause` and the last lines of the log as `log`).
Exit codes: 0 ready, 1 not ready, 2 could not tell (wrong arguments, no such unit, no systemctl).
"""

import http.client
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

READY, NOT_READY, CANNOT_TELL = 0, 1, 2
POLL_S = 1.0


@dataclass(frozen=True)
class Arguments:
    """What to wait for."""

    url: str
    """Where the server listens, as `http://127.0.0.1:30000`."""
    model: str
    """The served model's name, as requests give it."""
    unit: str | None = None
    """The systemd unit; None: the server runs without one, only its port is asked."""
    prompt: str = "Say in one sentence what the sea looks like."
    answer: str | None = None
    """The known answer to `prompt` at temperature 0; None: the answer must only be plausible."""
    timeout_s: float = 1800
    """Seconds from now to the first good answer."""
    request_timeout_s: float = 120
    """Seconds for one completion."""
    restarts: int | None = 0
    """Automatic restarts so far (0 right after `systemctl start`); None: as many as the first look shows."""
    log_lines: int = 20
    """How many of the log's last lines a failure shows."""
    api_key_file: str | None = None
    """A root-only file that holds nothing but the API key; None: the server asks for none."""


class CannotTell(Exception):  # noqa: N818 - says what it means: neither ready nor not ready
    """The question could not be answered; never taken for a no."""


@dataclass(frozen=True)
class Unit:
    """What systemd says of the unit."""

    active: str
    sub: str
    result: str
    restarts: int
    exit_status: str


@dataclass(frozen=True)
class Look:
    """One look at the server."""

    at_s: float
    unit: Unit | None
    health: int | None
    """HTTP status of /health; None: no connection."""


@dataclass(frozen=True)
class Progress:
    """What is known so far."""

    arguments: Arguments
    phase: str = "start"
    restarts: int | None = None


@dataclass(frozen=True)
class Decision:
    """What to do after a look: `wait`, `ask` (for a completion) or `failed`."""

    todo: str
    progress: Progress
    cause: str = ""


def decide(progress: Progress, look: Look) -> Decision:
    """Judge one look. Pure: no clock, no system."""
    if (cause := _unit_failed(progress, look.unit)) is not None:
        return Decision("failed", progress, cause)
    progress = _with_restarts(progress, look.unit)
    if look.health == 200:
        return Decision("ask", replace(progress, phase="healthy"))
    if look.at_s >= progress.arguments.timeout_s:
        return Decision("failed", progress, f"not ready after {look.at_s:.0f} s: {_health_in_words(look.health)}")
    return Decision("wait", replace(progress, phase="start" if look.health is None else "warm-up"))


def judge_answer(reply: dict[str, Any], known: str | None) -> str | None:
    """Why a chat completion is no good, or None. Known answers are compared without surrounding white space."""
    choice = reply["choices"][0]
    message = choice["message"]
    text = (message.get("content") or message.get("reasoning_content") or "").strip()
    if known is not None:
        return None if text == known.strip() else f"answered {text[:200]!r}, expected {known.strip()[:200]!r}"
    if not text:
        return "answered nothing"
    tokens = [(entry["token"], entry["logprob"]) for entry in (choice.get("logprobs") or {}).get("content") or []]
    if any(not isinstance(value, int | float) or abs(value) == float("inf") or value != value for _, value in tokens):
        return "the log probabilities of the answer are not finite (NaN in the model's output)"
    if len(tokens) >= 8 and len({token for token, _ in tokens}) == 1:
        return f"answered one token {len(tokens)} times: {tokens[0][0]!r}"
    return None


def main() -> int:
    """Read the arguments, wait, print events; returns the exit code."""
    began = time.monotonic()
    try:
        arguments = _arguments(sys.stdin.read())
        return _follow(arguments, began)
    except CannotTell as error:
        _event("cannot-tell", began, cause=str(error))
        return CANNOT_TELL


def _arguments(text: str) -> Arguments:
    try:
        given = json.loads(text)
        return Arguments(**given)
    except (ValueError, TypeError) as error:
        known = ", ".join(f.name for f in fields(Arguments))
        raise CannotTell(f"arguments on stdin: {error} (a JSON object with: {known})") from error


def _follow(arguments: Arguments, began: float) -> int:
    progress, phase = Progress(arguments, restarts=arguments.restarts), ""
    for look in _looks(arguments, began):
        decision = decide(progress, look)
        progress = decision.progress
        if progress.phase != phase and decision.todo != "failed":
            phase = progress.phase
            _event("phase", began, phase=phase)
        cause = decision.cause or None
        if decision.todo == "ask":
            cause = _ask(arguments)
            if cause is None:
                _event("ready", began)
                return READY
            if (again := decide(progress, _look(arguments, began))).todo == "failed":
                cause = f"{cause}; {again.cause}"
        if cause is not None:
            _event("failed", began, cause=cause, log=_log(arguments))
            return NOT_READY
    return NOT_READY


def _looks(arguments: Arguments, began: float) -> Iterator[Look]:
    while True:
        yield _look(arguments, began)
        time.sleep(POLL_S)


def _look(arguments: Arguments, began: float) -> Look:
    unit = _unit(arguments.unit) if arguments.unit else None
    return Look(time.monotonic() - began, unit, _health(arguments))


def _unit(name: str) -> Unit:
    keys = ["LoadState", "ActiveState", "SubState", "Result", "NRestarts", "ExecMainStatus"]
    command = ["systemctl", "show", name, "--no-pager", *(f"--property={key}" for key in keys)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotTell(f"systemctl: {error}") from error
    if done.returncode != 0:
        raise CannotTell(f"systemctl show {name}: exit code {done.returncode}, {done.stderr.strip()}")
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if found.get("LoadState") != "loaded":
        raise CannotTell(f"unit {name} is {found.get('LoadState', 'unknown')}, not loaded")
    return Unit(
        found["ActiveState"],
        found["SubState"],
        found["Result"],
        int(found.get("NRestarts") or 0),
        found.get("ExecMainStatus", ""),
    )


def _unit_failed(progress: Progress, unit: Unit | None) -> str | None:
    if unit is None:
        return None
    ended = f"result {unit.result}, exit status {unit.exit_status}"
    if unit.active == "failed":
        return f"the unit failed: {ended}"
    if unit.sub == "auto-restart":
        return f"the server ended and systemd is about to start it again: {ended}"
    if progress.restarts is not None and unit.restarts > progress.restarts:
        return f"the server ended and was restarted by systemd ({unit.restarts} times so far)"
    if unit.active in {"inactive", "deactivating"}:
        return f"the unit is {unit.active}: {ended}"
    return None


def _with_restarts(progress: Progress, unit: Unit | None) -> Progress:
    if unit is None or progress.restarts is not None:
        return progress
    return replace(progress, restarts=unit.restarts)


def _health(arguments: Arguments) -> int | None:
    try:
        with urllib.request.urlopen(f"{arguments.url}/health", timeout=30) as reply:  # noqa: S310 - our own server
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


def _health_in_words(health: int | None) -> str:
    return "nothing listens" if health is None else f"/health says {health}"


def _ask(arguments: Arguments) -> str | None:
    body = {
        "model": arguments.model,
        "messages": [{"role": "user", "content": arguments.prompt}],
        "temperature": 0,
        "max_tokens": 64,
        "logprobs": True,
    }
    headers = {"Content-Type": "application/json"}
    if arguments.api_key_file:
        headers["Authorization"] = f"Bearer {Path(arguments.api_key_file).read_text().strip()}"
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{arguments.url}/v1/chat/completions", json.dumps(body).encode(), headers
    )
    try:
        with urllib.request.urlopen(request, timeout=arguments.request_timeout_s) as reply:  # noqa: S310
            return judge_answer(json.load(reply), arguments.answer)
    except urllib.error.HTTPError as error:
        return f"a completion got HTTP {error.code}: {error.read(300).decode(errors='replace')}"
    except (OSError, http.client.HTTPException) as error:
        return f"a completion got no answer: {error}"
    except (ValueError, LookupError, TypeError) as error:
        return f"a completion came back in a form that is not a chat completion: {error!r}"


def _log(arguments: Arguments) -> list[str]:
    if arguments.unit is None:
        return []
    command = [
        "journalctl",
        "--unit",
        arguments.unit,
        "--lines",
        str(arguments.log_lines),
        "--output=cat",
        "--no-pager",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"(journalctl: {error})"]


def _event(event: str, began: float, **more: object) -> None:
    print(json.dumps({"event": event, "at_s": round(time.monotonic() - began, 1), **more}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
