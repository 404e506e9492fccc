"""A record out of the runner's events: the same whether they come over a connection or from a file left on the box."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpubox.bench.record import Machine, Probe, Record, Row, Server, WarmUp
from gpubox.support.data import validated

Event = dict[str, Any]


def fold(record: Record, event: Event) -> Record:
    """The record after one more event; events for the eye only leave it as it is."""
    value = {key: item for key, item in event.items() if key not in {"event", "at"}}
    match event.get("event"):
        case "machine":
            change: dict[str, Any] = {"machine": validated(Machine, value, "machine event")}
        case "server":
            own = {"profile": record.server.profile}
            change = {"server": validated(Server, {**own, **value}, "server event")}
        case "probe":
            change = {"probes": [*record.probes, validated(Probe, value, "probe event")]}
        case "warm_up":
            change = {"warm_ups": [*(record.warm_ups or []), validated(WarmUp, value, "warm-up event")]}
        case "row":
            change = {"rows": [*record.rows, validated(Row, value, "row event")]}
        case "end":
            change = _end(record, value)
        case _:
            return record
    return record.model_copy(update=change)


def fold_file(record: Record, path: Path) -> Record:
    """The record that a file of events tells; a last line that was cut off is left out."""
    for event in _lines(path.read_text(errors="replace").splitlines()):
        record = fold(record, event)
    return record


def _lines(lines: Iterable[str]) -> Iterable[Event]:
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _end(record: Record, value: dict[str, Any]) -> dict[str, Any]:
    """The runner's verdict, and ours on top of it: rows that failed and wrong answers fail a run that went through."""
    log = [f"server: {line}" for line in value.get("log") or []]
    problems = [value["problem"]] if value.get("problem") else []
    verdict = value.get("verdict", "failed")
    if verdict == "complete":
        problems = [*_wrong_answers(record), *_unfinished(record)]
        verdict = "failed" if problems else "complete"
    return {
        "verdict": verdict,
        "problem": "; ".join(problems) or None,
        "notes": [*record.notes, *_changed(record), *log],
    }


def _wrong_answers(record: Record) -> list[str]:
    return [f"wrong answer {probe.when} the sweep: {probe.problem}" for probe in record.probes if probe.problem]


def _unfinished(record: Record) -> list[str]:
    return [f"{row.concurrency} clients: {row.problem}" for row in record.rows if row.status != "complete"]


def _changed(record: Record) -> list[str]:
    """Not a failure: with other batch shapes, floating-point sums differ and a token may flip."""
    texts = {probe.text for probe in record.probes if not probe.problem}
    return ["the answer at temperature 0 before and after the sweep differs"] if len(texts) > 1 else []
