"""Wait on the box until the model server answers, or say why it does not.

Arguments are one JSON object on stdin (`Arguments` below); events come out as JSON lines, each with `event` and `at_s`:
`phase` (with `phase`), `waiting` every few seconds (with what is waited for, what is `seen` and the limits), and at the
end `ready`, or `failed` (with `cause`, the last lines of the log as `log`, and the `telling` ones of all its lines).
Exit codes: 0 ready, 1 not ready, 2 could not tell (wrong arguments, no such unit, no systemctl).
"""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from gpubox.remote import command, endpoint, files, proc, seen
from gpubox.remote.arguments import parse
from gpubox.remote.command import CommandError
from gpubox.remote.endpoint import NoAnswer
from gpubox.remote.seen import Seen

READY, NOT_READY, CANNOT_TELL = 0, 1, 2
POLL_S = 1.0
BEAT_S = 4.0
"""From one `waiting` to the next, in seconds."""
EMPTY_S = 3.0
"""How long a unit may be active without a process: systemd notices an end a moment later."""
DYING_LOOKS = 15
FIRST_PHASE = "import"
LONG_PROMPT_CHARACTERS = 8000
TEXT = "The sea is wide and blue, and the wind moves the waves along the shore where people walk in the evening. "


@dataclass(frozen=True)
class Arguments:
    """What to wait for."""

    url: str
    """Where the server listens, as `http://127.0.0.1:30000`."""
    model: str
    """The served model's name, as requests give it."""
    unit: str
    """The systemd unit, as `sglang.service`."""
    prompt: str = "Say in one sentence what the sea looks like."
    answer: str | None = None
    """The known answer to `prompt` at temperature 0; None: the answer must only be plausible."""
    timeout_s: float = 1800
    """Seconds from now to the first good answer. 0: one look."""
    limits_s: dict[str, float] = field(default_factory=dict)
    """Phase -> seconds that it may take; a phase that is not named may take all of `timeout_s`."""
    request_timeout_s: float = 120
    """Seconds for one completion."""
    restarts: int | None = None
    """Automatic restarts that are no news (0 right after `systemctl start`); None: what the first look shows."""
    thorough: bool = False
    """After the first answer also a long prompt, then a burst, then the first question again."""
    concurrency: int = 64
    """Requests at once in the burst; twice as many are sent in all (100 went wrong where 1 did not: sglang#22779)."""
    phases: list[list[str]] = field(default_factory=list)
    """[name, regular expression] in order: what the log says when a phase begins."""
    telling: list[str] = field(default_factory=list)
    """Regular expressions of log lines that a failure shows, the first of each."""
    fatal: list[str] = field(default_factory=list)
    """Regular expressions of log lines after which nothing good comes, unless /health says 200 within `grace_s`."""
    grace_s: float = 60
    log_lines: int = 20
    """How many of the log's last lines a failure shows."""
    api_key_file: str | None = None
    """A root-only file that holds nothing but the API key; None: the server asks for none."""
    argv_file: str | None = None
    """The release's argv.json: what the main process must be; None, or not there: whatever it is."""
    idle_s: float | None = None
    """Seconds without a line of the log, CPU time or reading, after which nothing will come of it; None: for ever."""


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
    unit: Unit
    health: int | None
    """HTTP status of /health; None: no reply."""
    said: str = "nothing listens"
    """In words, where there is no status."""
    lines: tuple[str, ...] = ()
    """What the log got since the last look."""
    foreign: str | None = None
    """The process that listens on the port and is not the unit's."""
    seen: Seen | None = None
    """The unit's processes."""


@dataclass(frozen=True)
class Progress:
    """What is known so far."""

    arguments: Arguments
    phase: str = FIRST_PHASE
    since_s: float = 0
    """When the phase began."""
    restarts: int | None = None
    telling: tuple[tuple[str, str], ...] = ()
    """Pattern and the first line that it matched."""
    fatal: str | None = None
    """The first fatal line of the log."""
    fatal_s: float = 0
    argv: tuple[str, ...] = ()
    """What the main process must be; empty: whatever it is."""
    last: str = ""
    """The log's last line."""
    seen: Seen | None = None
    """The unit's processes when something last moved."""
    moved_s: float = 0
    """When that was."""
    filled_s: float = 0
    """When the unit last had a process."""


@dataclass(frozen=True)
class Decision:
    """What to do after a look: `wait`, `ask` (for completions) or `failed`."""

    todo: str
    progress: Progress
    cause: str = ""


def decide(before: Progress, look: Look) -> Decision:
    """Judge one look. Pure: no clock, no system."""
    progress = _with_lines(before, look)
    if (cause := _unit_failed(progress, look.unit)) is not None:
        return Decision("failed", progress, cause)
    progress = _with_processes(progress, look)
    if (cause := _cannot_succeed(progress, look)) is not None:
        return Decision("failed", progress, cause)
    if look.foreign is not None:  # its answers would pass for ours, even in SGLang's own warm-up
        return Decision("failed", progress, f"{look.foreign} listens on the port, not the unit")
    if progress.restarts is None:
        progress = replace(progress, restarts=look.unit.restarts)
    if look.health == 200:
        return Decision("ask", progress)
    if progress.fatal is not None and look.at_s - progress.fatal_s >= progress.arguments.grace_s:
        return Decision("failed", progress, f"the log says: {progress.fatal}")
    state = look.said if look.health is None else f"/health says {look.health}"
    state = f"{state}; {look.seen.told()}" if look.seen is not None else state
    limit = progress.arguments.limits_s.get(progress.phase)
    if limit is not None and look.at_s - progress.since_s >= limit:
        return Decision("failed", progress, f"phase {progress.phase} takes longer than its {limit:.0f} s: {state}")
    if look.at_s >= progress.arguments.timeout_s:
        return Decision("failed", progress, f"not ready after {look.at_s:.0f} s, in phase {progress.phase}: {state}")
    return Decision("wait", progress)


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
    if not all(isinstance(value, (int, float)) and isfinite(value) for _, value in tokens):
        return "the log probabilities of the answer are not finite: NaN in the model's output"
    if len(tokens) >= 8 and len({token for token, _ in tokens}) == 1:
        return f"answered one token {len(tokens)} times: {tokens[0][0]!r}"
    return None


def long_prompt(arguments: Arguments, context: int) -> list[dict[str, str]]:
    """Messages of up to half of the model's context (in tokens; a character is at most about one).

    Where the answer is known: the same question and answer many times over, so that the answer stays known.
    """
    room = min(LONG_PROMPT_CHARACTERS, context // 2)
    question = {"role": "user", "content": arguments.prompt}
    if arguments.answer is None:
        return [{"role": "user", "content": TEXT * (room // len(TEXT)) + arguments.prompt}]
    markup = 50  # of the chat template, around two messages
    turns = room // (len(arguments.prompt) + len(arguments.answer) + markup)
    return [question, {"role": "assistant", "content": arguments.answer}] * turns + [question]


def main(words: list[str]) -> int:
    """Read the arguments, wait, print events; returns the exit code. It takes no words."""
    began = time.monotonic()
    try:
        return _follow(parse(Arguments, sys.stdin.read()), began)
    except (CannotTell, CommandError, ValueError) as error:
        _event("cannot-tell", began, cause=str(error))
        return CANNOT_TELL


def _follow(arguments: Arguments, began: float) -> int:
    log = _Log(arguments.unit)
    argv = files.read_json(Path(arguments.argv_file), []) if arguments.argv_file else []
    decision = Decision("wait", Progress(arguments, restarts=arguments.restarts, argv=tuple(argv)))
    _event("phase", began, phase=FIRST_PHASE)
    told_s = 0.0
    while decision.todo == "wait":
        phase = decision.progress.phase
        look = _look(arguments, log, began)
        decision = decide(decision.progress, look)
        if decision.progress.phase != phase:
            _event("phase", began, phase=decision.progress.phase)
        if decision.todo == "wait":
            if look.at_s - told_s >= BEAT_S:
                told_s = look.at_s
                _event("waiting", began, **waiting(decision.progress, look))
            time.sleep(POLL_S)
    cause = decision.cause if decision.todo == "failed" else _ask(arguments, began)
    if cause is None:
        _event("ready", began)
        return READY
    if decision.todo == "ask":
        decision = _afterwards(decision.progress, log, began)
        cause = f"{cause}; {decision.cause}" if decision.todo == "failed" else cause
    telling = [_masked(arguments, line) for _, line in decision.progress.telling]
    last = [_masked(arguments, line) for line in log.last(arguments.log_lines)]
    _event("failed", began, cause=_masked(arguments, cause), telling=telling, log=last)
    return NOT_READY


def _afterwards(progress: Progress, log: _Log, began: float) -> Decision:
    """What became of a server that gave no good answer: that it died over it is seen only a moment later."""
    for _ in range(DYING_LOOKS):
        decision = decide(progress, _look(progress.arguments, log, began))
        if decision.todo != "wait":
            break
        progress = decision.progress
        time.sleep(POLL_S)
    return decision


def _look(arguments: Arguments, log: _Log, began: float) -> Look:
    unit, processes = _unit(arguments.unit, log)
    health, said = _health(arguments)
    patterns = arguments.phases or arguments.telling or arguments.fatal
    lines = log.new() if patterns else ()
    return Look(time.monotonic() - began, unit, health, said, lines, _foreign(arguments), processes)


def waiting(progress: Progress, look: Look) -> dict[str, Any]:
    """What is waited for and what is seen, for people."""
    arguments = progress.arguments
    return {
        "phase": progress.phase,
        "phase_s": round(look.at_s - progress.since_s),
        "limit_s": arguments.limits_s.get(progress.phase),
        "timeout_s": arguments.timeout_s,
        "seen": _masked(arguments, look.seen.told()) if look.seen is not None else "",
        "idle_s": round(look.at_s - progress.moved_s),
        "last": _masked(arguments, progress.last),
    }


def _with_processes(progress: Progress, look: Look) -> Progress:
    if look.seen is None or look.lines or look.seen.moved_since(progress.seen):
        progress = replace(progress, seen=look.seen or progress.seen, moved_s=look.at_s)
    if look.lines:
        progress = replace(progress, last=look.lines[-1][:200])
    return replace(progress, filled_s=look.at_s) if look.seen is None or look.seen.count != 0 else progress


def _cannot_succeed(progress: Progress, look: Look) -> str | None:
    """Why nothing will come of a start that systemd takes for a good one; None: it may."""
    if look.seen is None or look.unit.active != "active":
        return None
    if not look.seen.is_asked_for(list(progress.argv)):
        asked = f"the release asks for {seen.shown(list(progress.argv))}"
        where = f"systemctl cat {progress.arguments.unit}"
        return f"the main process is not the server: {look.seen.told()}; {asked} ({where})"
    if look.at_s - progress.filled_s >= EMPTY_S:
        return f"the unit is active ({look.unit.sub}) and has no process"
    idle_s, limit_s = look.at_s - progress.moved_s, progress.arguments.idle_s
    if look.health != 200 and limit_s is not None and idle_s >= limit_s:
        return f"nothing has moved for {idle_s:.0f} s, no line of the log, no CPU time, no reading: {look.seen.told()}"
    return None


def _with_lines(progress: Progress, look: Look) -> Progress:
    for line in look.lines:
        progress = _with_phase(progress, line, look.at_s)
        if line[:1].isspace():  # source code inside a traceback, not a message
            continue
        seen = {pattern for pattern, _ in progress.telling}
        new = [(p, line[:500]) for p in progress.arguments.telling if p not in seen and re.search(p, line)]
        progress = replace(progress, telling=(*progress.telling, *new))
        if progress.fatal is None and any(re.search(p, line) for p in progress.arguments.fatal):
            progress = replace(progress, fatal=line[:500], fatal_s=look.at_s)
    return progress


def _with_phase(progress: Progress, line: str, at_s: float) -> Progress:
    names = [name for name, _ in progress.arguments.phases]
    now = names.index(progress.phase) if progress.phase in names else -1
    reached = [number for number, (_, p) in enumerate(progress.arguments.phases) if number > now and re.search(p, line)]
    return replace(progress, phase=names[reached[-1]], since_s=at_s) if reached else progress


def _unit(name: str, log: _Log) -> tuple[Unit, Seen | None]:
    keys = ["LoadState", "ActiveState", "SubState", "Result", "NRestarts", "ExecMainStatus", "InvocationID"]
    found = command.properties(name, *keys, "MainPID", "ControlGroup")
    if found.get("LoadState") != "loaded":
        raise CannotTell(f"unit {name} is {found.get('LoadState', 'unknown')}, not loaded")
    log.invocation = log.invocation or found.get("InvocationID", "")
    restarts = int(found.get("NRestarts") or 0)
    unit = Unit(found["ActiveState"], found["SubState"], found["Result"], restarts, found.get("ExecMainStatus", ""))
    if "MainPID" not in found:
        return unit, None
    return unit, seen.look(int(found["MainPID"]), found.get("ControlGroup", ""))


def _unit_failed(progress: Progress, unit: Unit) -> str | None:
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


def _foreign(arguments: Arguments) -> str | None:
    port = urllib.parse.urlsplit(arguments.url).port or 80
    others = [process for process in proc.listeners(port) if not proc.is_in(process, arguments.unit)]
    return proc.named(others[0]) if others else None


class _Log:
    """The journal of one start of the unit: of the invocation that the first look saw."""

    def __init__(self, unit: str) -> None:
        self._unit, self._cursor, self.invocation = unit, "", ""

    def new(self) -> tuple[str, ...]:
        """Lines since the last call."""
        if not self.invocation:
            return ()
        after = [f"--after-cursor={self._cursor}"] if self._cursor else []
        words = [
            "journalctl",
            f"_SYSTEMD_INVOCATION_ID={self.invocation}",
            "--show-cursor",
            "--output=cat",
            "--quiet",
        ]
        lines = _journal([*words, "--no-pager", *after])
        if lines and lines[-1].startswith("-- cursor: "):
            self._cursor = lines.pop().removeprefix("-- cursor: ")
        return tuple(lines)

    def last(self, count: int) -> list[str]:
        """The last lines of this start, systemd's own about it included; never of the server that ran before."""
        start = [f"_SYSTEMD_INVOCATION_ID={self.invocation}", "+", f"INVOCATION_ID={self.invocation}"]
        which = start if self.invocation else [f"--unit={self._unit}"]
        return _journal(["journalctl", *which, f"--lines={count}", "--output=cat", "--quiet"])


def _journal(words: list[str]) -> list[str]:
    return command.output(words, nothing=1).splitlines()  # 1: no line of this start yet


def _health(arguments: Arguments) -> tuple[int | None, str]:
    try:
        endpoint.get(f"{arguments.url}/health", timeout_s=30)
    except NoAnswer as error:
        if error.status is not None:
            return error.status, ""
        return None, "nothing listens" if error.refused else f"/health: {error}"
    return 200, ""


def _ask(arguments: Arguments, began: float) -> str | None:
    question = [{"role": "user", "content": arguments.prompt}]
    _event("phase", began, phase="answer")
    cause = _complete(arguments, question, arguments.answer)
    if cause is not None or not arguments.thorough:
        return cause
    _event("phase", began, phase="long prompt")
    cause = _complete(arguments, long_prompt(arguments, _context(arguments)), arguments.answer)
    if cause is not None:
        return f"with a long prompt: {cause}"
    _event("phase", began, phase="burst")
    with ThreadPoolExecutor(arguments.concurrency) as pool:
        many = list(pool.map(lambda _: _complete(arguments, question, None), range(2 * arguments.concurrency)))
    if bad := [cause for cause in many if cause is not None]:
        return f"{len(bad)} of {len(many)} requests failed, {arguments.concurrency} at once; the first: {bad[0]}"
    _event("phase", began, phase="answer again")
    cause = _complete(arguments, question, arguments.answer)
    return None if cause is None else f"after {len(many)} requests: {cause}"


def _context(arguments: Arguments) -> int:
    try:
        models = endpoint.get(f"{arguments.url}/v1/models", _key(arguments), arguments.request_timeout_s)
        return int(models["data"][0]["max_model_len"])
    except (NoAnswer, ValueError, LookupError, TypeError):
        return 2048


def _complete(arguments: Arguments, messages: list[dict[str, str]], known: str | None) -> str | None:
    body = {
        "model": arguments.model,
        "messages": messages,
        "temperature": 0,
        "max_tokens": max(64, len(known or "")),
        "logprobs": True,
    }
    try:
        url = f"{arguments.url}/v1/chat/completions"
        return judge_answer(endpoint.post(url, body, _key(arguments), arguments.request_timeout_s), known)
    except NoAnswer as error:
        return f"a completion got {'no answer: ' if error.status is None else ''}{error}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return f"a completion came back in a form that is not a chat completion: {error!r}"


def _masked(arguments: Arguments, text: str) -> str:
    """SGLang logs its arguments whole, the API key too (server_args=ServerArgs(...)): it stays in the journal."""
    key = _key(arguments)
    return text.replace(key, "(the API key)") if key else text


def _key(arguments: Arguments) -> str | None:
    try:
        return endpoint.read_key(arguments.api_key_file)
    except OSError as error:
        raise CannotTell(f"the file with the API key: {error}") from error


def _event(event: str, began: float, **more: object) -> None:
    print(json.dumps({"event": event, "at_s": round(time.monotonic() - began, 1), **more}), flush=True)
