"""What the second round trip means: the server's answer, and its speed against the last record."""

from pathlib import Path
from statistics import median
from typing import Any

from gpubox.bench import record
from gpubox.bench.record import Record
from gpubox.doctor.check import Check
from gpubox.doctor.look import Looks
from gpubox.hosts import Box
from gpubox.server import readiness
from gpubox.server.outside import Outside
from gpubox.support import paths
from gpubox.support.errors import GpuboxError
from gpubox.support.reading import json_object

SLOWER = 1.5
"""Time between tokens against the record's from where on it is said; a busy server is slower too."""


def endpoint(box: Box, looks: Looks) -> Check:
    """One look of the probe: /health and a completion."""
    events = [line for line in _said(looks) if "event" in line]
    where = f"port {box.profile.port}"
    cure = f"journalctl -u sglang on {box.name}; gpubox doctor {box.name} --bundle FILE for a report"
    if not events:
        return Check(box.name, "endpoint", "unknown", "the probe said nothing", "Python 3 on the box", "")
    event = events[-1]
    if event["event"] == "ready":
        known = " with the known answer" if box.profile.known_answer else ""
        return Check(box.name, "endpoint", "pass", f"{where} answers a question{known}")
    if event["event"] == "failed":
        story = readiness.story({**event, "log": []})
        return Check(box.name, "endpoint", "fail", f"{where}: {story}", "a right answer", cure)
    return Check(box.name, "endpoint", "unknown", f"{where}: {readiness.story({**event, 'log': []})}", "", cure)


def outside(box: Box, found: Outside) -> Check:
    """The same server asked from this machine, once it answers on the box."""
    if found.kind in {"answers", "as asked"}:
        return Check(box.name, "outside", "pass", found.said)
    if found.kind == "unknown":
        return Check(box.name, "outside", "unknown", found.said)
    cure = "; ".join(f"perhaps {cause}" for cause in found.causes)
    text = f"it answers on the box, not from here: {found.said}"
    return Check(box.name, "outside", "fail", text, "the same answer for its clients as on the box", cure)


def performance(box: Box, looks: Looks, runs: Path | None = None) -> Check:
    """Seconds between tokens of one client, against the newest record of this box and profile."""
    times = [line["tpot_s"] for line in _said(looks) if "tpot_s" in line]
    if not times:
        return Check(box.name, "performance", "unknown", "not measured: the server gave no whole answer", "one", "")
    now_ms = 1000 * float(times[0])
    found = last(box, runs or paths.project() / "runs")
    if found is None:
        cure = f"gpubox bench {box.name} makes one"
        text = f"{now_ms:.1f} ms between tokens; no record to compare with"
        return Check(box.name, "performance", "warn", text, "a record of this box and profile", cure)
    name, then_ms = found
    text = f"{now_ms:.1f} ms between tokens, {then_ms:.1f} ms in {name}"
    if now_ms <= then_ms * SLOWER:
        return Check(box.name, "performance", "pass", text)
    cure = "look at other clients, power limit and temperature (nvidia-smi -q -d PERFORMANCE); then gpubox bench"
    return Check(box.name, "performance", "warn", text, f"at most {SLOWER} times the record", cure)


def last(box: Box, runs: Path) -> tuple[str, float] | None:
    """Name and milliseconds between tokens at one client, of the newest whole record; None: there is none."""
    for path in sorted(runs.glob("*/record.json"), reverse=True):
        try:
            found = record.load(path)
        except GpuboxError:
            continue
        if found.label == box.name and found.server.profile == box.settings.profile and (speed := _tpot(found)):
            return found.id, speed
    return None


def _said(looks: Looks) -> list[dict[str, Any]]:
    """The JSON lines of the probe, and after a good answer of the clock."""
    return [
        json_object(line, "what the probe said")
        for line in looks.answers["ready"].text.splitlines()
        if line.startswith("{")
    ]


def _tpot(found: Record) -> float | None:
    rows = [row for row in found.rows if row.concurrency == 1 and row.status == "complete" and row.tpot_ms]
    values = [row.tpot_ms.median or row.tpot_ms.mean for row in rows if row.tpot_ms]
    told = [value for value in values if value]
    return median(told) if told else None
