"""What the probe needs to know of SGLang's log, and what a failed start tells people."""

from typing import Any

from gpubox.remote import secrets
from gpubox.server import verdict

LIMITS_S = {"import": 900.0, "connect": 300.0, "capture": 1500.0, "warm-up": 900.0}
"""Phase -> seconds. Loading has no limit of its own: 7-8 minutes are usual on 8 cards, more from a cold disk. NCCL that
cannot connect hangs for ever (the imports of Python take 80 s on two busy cores); a capture once ran 36 minutes
without end (sglang#29580); kernels are compiled in the warm-up."""
MOVES_S = 15
"""Seconds of silence that are not worth a word."""
IDLE_S = 180.0
"""Seconds without a line, CPU time or reading after which a start is given up. Importing, loading, capturing and
compiling all use one of them; what waits for another machine's part (--nnodes) uses none, and has its own limits."""


def about_log() -> dict[str, Any]:
    """Arguments of the probe (gpubox.remote.probe.Arguments) that come from the verdict's table."""
    table = verdict.table()
    return {
        "phases": [[phase.name, phase.pattern] for phase in table.phases],
        "telling": [known.pattern for known in table.lines if known.kind == "fatal"],
        "fatal": [known.pattern for known in table.lines if known.ends],
        "limits_s": LIMITS_S,
        "idle_s": IDLE_S,
    }


def beat(event: dict[str, Any]) -> str:
    """A `waiting` event of the probe for people: what is waited for, since when, until when, and what is seen."""
    limit = f" of {event['limit_s']:.0f} s" if event.get("limit_s") else " s"
    parts = [f"{event['phase']}, {event['phase_s']}{limit} ({event['at_s']:.0f} of {event['timeout_s']:.0f} s in all)"]
    parts += [event["seen"]] if event["seen"] else []
    parts += [f"nothing has moved for {event['idle_s']} s"] if event["idle_s"] > MOVES_S else []
    parts += [f"last line of the log: {event['last']}"] if event["last"] else []
    return "; ".join(parts)


def story(event: dict[str, Any]) -> str:
    """A `failed` event of the probe for people: the cause, the verdict on the log, the log's last lines."""
    log = secrets.lines(event.get("log", []))
    said = verdict.cause([*secrets.lines(event.get("telling", [])), *log])
    parts = [secrets.text(event.get("cause", "no cause given")), *([f"the log says: {said}"] if said else [])]
    return "\n".join([*parts, *(f"    | {line}" for line in log)])
