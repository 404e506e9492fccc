"""Measure one row with SGLang's own bench_serving, in a fork, so that its slow imports are paid once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import signal
import sys
import time
import traceback
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpubox.remote import endpoint, files
from gpubox.remote.bench import probe
from gpubox.remote.bench.events import STOPPING, check_interrupted
from gpubox.remote.bench.nvml import Cards
from gpubox.remote.bench.plan import Plan, Point
from gpubox.remote.bench.row import row_of
from gpubox.remote.bench.server import Server

MODULE = "sglang.bench_serving"
_POLL_S, _ALIVE_S = 0.1, 5.0
_BAR = re.compile(rb"(\d+)/\d+ \[")
_BULKY = ("itls", "generated_texts", "input_lens", "output_lens", "server_info")
Progress = Callable[[int], None]


def measure(
    plan: Plan, point: Point, tokenizer: str, server: Server, cards: Cards, progress: Progress
) -> dict[str, Any]:
    """The finished row, or a partial one that says why. Raises Stop when the sweep itself is to end."""
    raw, log = Path(plan.folder) / f"{point.name}.jsonl", Path(plan.folder) / f"{point.name}.log"
    os.environ.update(endpoint.past_proxies(plan.url, os.environ))
    client = _start(_argv(plan, point, tokenizer, raw), log, plan.api_key)
    watch = _Watch(plan, point, server, log)
    try:
        while (code := _exit_code(client)) is None and watch.problem is None:
            check_interrupted()
            cards.sample()
            if watch.look():
                progress(watch.done)
            time.sleep(_POLL_S)
    finally:
        _end(client)
    watch.look()
    row = {**_row(point, raw, log, watch, code), "input_tokens": plan.input_tokens}
    since = watch.last - (row["duration_s"] or 0)
    return {**row, "cards": cards.summary(since, watch.last)}


class _Watch:
    """Follows the client's progress bar and the server, and knows when to give up."""

    def __init__(self, plan: Plan, point: Point, server: Server, log: Path) -> None:
        self.done, self.problem = 0, None if point.prompts else "nothing to do"
        self.began = self.last = time.time()
        self._plan, self._server, self._log, self._alive_at = plan, server, log, self.began

    def look(self) -> bool:
        """Looks once; true when more requests have finished since the last look."""
        now, before = time.time(), self.done
        self.done = max(self.done, _finished(self._log))
        if self.done > before:
            self.last = now
        elif now - self.last > self._plan.patience_s:
            self.problem = (
                f"given up: no request finished for {self._plan.patience_s:.0f} s; {probe.diagnose(self._plan)}"
            )
        if now - self._alive_at > _ALIVE_S:
            self._alive_at, self.problem = now, self.problem or self._server.problem()
        return self.done > before


def _argv(plan: Plan, point: Point, tokenizer: str, raw: Path) -> list[str]:
    address = urllib.parse.urlsplit(plan.url)
    where = ["--host", str(address.hostname), "--port", str(address.port or 80)]
    if address.scheme == "https" or address.path:
        where = ["--base-url", plan.url]
    options = {
        "--backend": "sglang",
        "--dataset-name": "random-ids",
        "--random-input-len": plan.input_tokens,
        "--random-output-len": point.output_tokens,
        "--random-range-ratio": 1.0,
        "--num-prompts": point.prompts,
        "--max-concurrency": point.concurrency,
        "--model": tokenizer,
        "--tokenizer": tokenizer,
        "--warmup-requests": 1,
        "--seed": point.seed,
        "--output-file": raw,
    }
    words = [str(word) for pair in options.items() for word in pair]
    return [MODULE, *where, *words, "--tokenize-prompt", "--flush-cache", "--output-details"]


def _start(argv: list[str], log: Path, api_key: str | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for number in STOPPING:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(out, stream)
        if api_key:
            os.environ["OPENAI_API_KEY"] = api_key  # where bench_serving looks for it; never on a command line
        sys.argv = argv
        runpy.run_module(MODULE, run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # a fork must never return into its parent's code
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _exit_code(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, ChildProcessError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _finished(log: Path) -> int:
    """Requests finished, by the last progress bar in the client's log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4000))
            found = _BAR.findall(file.read())
    except OSError:
        return 0
    return int(found[-1]) if found else 0


def _row(point: Point, raw: Path, log: Path, watch: _Watch, code: int | None) -> dict[str, Any]:
    own = {
        "concurrency": point.concurrency,
        "repeat": point.repeat,
        "seed": point.seed,
        "prompts": point.prompts,
        "output_tokens": point.output_tokens,
    }
    result = _result(raw)
    if result is not None:
        row = {**row_of(result, point.prompts), **own}
        return {**row, "problem": "; ".join(filter(None, [row["problem"], watch.problem])) or None}
    problem = watch.problem or f"bench_serving ended with exit code {code}: {_last_line(log)}"
    answered = max(0, watch.done - _errors(log))
    return {
        **row_of({}),
        **own,
        "completed": answered,
        "status": "partial" if answered else "failed",
        "problem": problem,
    }


def _errors(log: Path) -> int:
    """Requests that failed: the client's progress bar counts them as finished, but it prints each error."""
    return log.read_bytes().count(b"output.error=") if log.exists() else 0


def _result(raw: Path) -> dict[str, Any] | None:
    """The result; its bulk (a time for every token) and the server's secrets do not stay on the disk."""
    try:
        result: dict[str, Any] = json.loads(raw.read_text().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None
    slim = {key: value for key, value in result.items() if key not in _BULKY}
    files.write(raw, f"{json.dumps(slim)}\n".encode())
    return result


def _last_line(log: Path) -> str:
    """The client's last words; it prints a traceback as one line, of which the end tells most."""
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line.strip(" '\"") for line in text.replace("\\n", "\n").splitlines()]
    return next((line[:300] for line in reversed(lines) if line), "it said nothing")
