"""The sweep, on the box: describe, probe, warm up, measure every row, probe again."""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpubox.remote import endpoint, secrets
from gpubox.remote.arguments import parse
from gpubox.remote.bench import machine, probe, recorded
from gpubox.remote.bench.events import STOPPING, Events, Stop, check_interrupted, stop_on_signal
from gpubox.remote.bench.nvml import Cards
from gpubox.remote.bench.plan import Plan, Point, points, warm_ups
from gpubox.remote.bench.point import MODULE, measure
from gpubox.remote.bench.server import CURRENT, Server, server_of, wait_until_ready
from gpubox.remote.endpoint import NoAnswer

FREE_MIB, ALMOST_NONE_MIB = 200, 5


def main(words: list[str]) -> int:
    """Runs the plan, which is the first line of standard input; the rest of it is a life line. It takes no words.

    Every line on standard output is one event, the last one `end` with the verdict.
    """
    plan = _with_key(parse(Plan, _first_line()))
    Path(plan.folder).mkdir(parents=True)
    for number in STOPPING:
        signal.signal(number, stop_on_signal)
    events = Events(Path(plan.folder))
    server: Server | None = None
    log: list[str] = []
    try:
        _check_disk(Path(plan.folder), FREE_MIB)
        server = server_of(plan, Path(plan.folder))
        _sweep(plan, server, events)
        verdict, problem = "complete", ""
    except Stop as stop:
        verdict, problem = stop.verdict, stop.problem
        if server is not None and stop.verdict != "interrupted":
            with contextlib.suppress(Stop, OSError):
                log = server.log()
    except OSError as error:
        verdict, problem = "failed", f"on the box: {error}"
    finally:
        if server is not None:
            server.stop()
    events.say("end", verdict=verdict, problem=problem, log=log)
    return 0


def _with_key(plan: Plan) -> Plan:
    """The key that gpubox's own service asks for lies beside its release, for root alone."""
    file = CURRENT / "api-key"
    if plan.unit is None or plan.api_key or not file.is_file():
        return plan
    return replace(plan, api_key=endpoint.read_key(str(file)))


def _first_line() -> str:
    """Byte by byte: what came after it must stay to be read (check_interrupted)."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line.decode()


def _check_disk(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free // 2**20
    if free < needed:
        raise Stop("failed", f"the disk is full: {free} MiB free at {folder}, {FREE_MIB} MiB needed for the raw files")


def _sweep(plan: Plan, server: Server, events: Events) -> None:
    cards = Cards()
    events.say("machine", **machine.describe(), cards=cards.describe(), driver=cards.driver, cards_note=cards.reason)
    _import_client()
    ready_s = wait_until_ready(plan, server)
    info = _server_info(plan)
    model, tokenizer = _model(plan), plan.tokenizer or str(info.get("tokenizer_path") or "")
    described = {**_typed(info), **server.describe(), "server_args": recorded.server_args(info), "cap": _cap(info)}
    events.say("server", url=plan.url, model=model, version=info.get("version"), ready_s=ready_s, **described)
    random_weights = info.get("load_format") == probe.RANDOM_WEIGHTS
    events.say("probe", when="before", **probe.ask(plan, model, random_weights))
    for point in warm_ups(plan):
        _point(plan, point, tokenizer, server, Cards(), events, keep=False)
    for point in points(plan):
        _point(plan, point, tokenizer, server, cards, events)
    events.say("probe", when="after", **probe.ask(plan, model, random_weights))


def _point(
    plan: Plan, point: Point, tokenizer: str, server: Server, cards: Cards, events: Events, keep: bool = True
) -> None:
    def progress(done: int) -> None:
        events.say("progress", **doing, done=done)

    doing = {"concurrency": point.concurrency, "repeat": point.repeat, "of": point.prompts, "warm_up": not keep}
    progress(0)
    row = measure(plan, point, tokenizer, server, cards, progress)
    if keep:
        events.say("row", **row)
    else:
        events.say("warm_up", **_warm_up(row))
    check_interrupted()
    if problem := server.problem():
        raise Stop("failed", f"{problem} (at {point.concurrency} clients)")
    if row["status"] != "complete":
        _check_disk(Path(plan.folder), ALMOST_NONE_MIB)
        _check_answers(plan, point)
    if row["status"] == "failed":
        raise Stop("failed", f"{'warm-up' if not keep else 'row'} at {point.concurrency} clients: {row['problem']}")
    if row["status"] == "partial" and "given up" in str(row["problem"]):
        raise Stop("failed", f"row at {point.concurrency} clients: {row['problem']}")


def _warm_up(row: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a row that does not count."""
    kept = {key: row.get(key) for key in ("concurrency", "input_tokens", "output_tokens", "duration_s")}
    return {**kept, "requests": row.get("completed")}


def _check_answers(plan: Plan, point: Point) -> None:
    """After failures: is the server still there? Of one elsewhere nothing else can be seen."""
    try:
        endpoint.get(f"{plan.url}/health", plan.api_key, 30)
    except NoAnswer as error:
        raise Stop("failed", f"the server no longer answers: {error} (at {point.concurrency} clients)") from error


def _server_info(plan: Plan) -> dict[str, Any]:
    """What SGLang says of itself; releases before 0.5.15 or so know only the older path."""
    said = ""
    for path in ("/server_info", "/get_server_info"):
        try:
            info = endpoint.get(f"{plan.url}{path}", plan.api_key, 30)
        except NoAnswer as error:
            said = str(error)
            continue
        if isinstance(info, dict) and "tokenizer_path" in info:
            return info
    raise Stop("cannot tell", f"{plan.url} is no SGLang server that answers /server_info: {said or 'another reply'}")


def _typed(info: dict[str, Any]) -> dict[str, Any]:
    """The command line, where the server tells it: newer releases do."""
    command = info.get("launch_command")
    return {"argv": secrets.argv(shlex.split(command))} if isinstance(command, str) and command else {}


def _model(plan: Plan) -> str:
    try:
        return str(endpoint.get(f"{plan.url}/v1/models", plan.api_key)["data"][0]["id"])
    except (NoAnswer, LookupError, TypeError) as error:
        raise Stop("cannot tell", f"{plan.url}/v1/models: {error}") from error


def _cap(info: dict[str, Any]) -> int | None:
    """How many requests the server really runs at once; `max_running_requests` is null when nothing was asked for."""
    states = info.get("internal_states")
    first = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    value = first.get("effective_max_running_requests_per_dp", info.get("max_running_requests"))
    return value if isinstance(value, int) else None


def _import_client() -> None:
    """Pays the slow imports once, while a child server still loads; the forks inherit them."""
    try:
        importlib.import_module(MODULE)
    except ImportError as error:
        raise Stop("cannot tell", f"{sys.executable} cannot import {MODULE}: {error}") from error
