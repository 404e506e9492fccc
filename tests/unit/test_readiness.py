"""What the probe is told of the log, and what a failure tells people."""

from pathlib import Path

import pytest

from gpubox.server import readiness
from gpubox.server.probe import Arguments, Look, Progress, Unit, decide

RECORDED = Path(__file__).parent.parent / "cases/verdict"
RUNNING = Unit("active", "running", "success", 0, "0")


def phases(name: str) -> list[str]:
    progress = Progress(Arguments("http://x", "m", **readiness.about_log()))
    seen = [progress.phase]
    for line in (RECORDED / f"{name}.log").read_text().splitlines():
        progress = decide(progress, Look(1, RUNNING, 503, lines=(line,))).progress
        seen += [progress.phase] if progress.phase != seen[-1] else []
    return seen


def test_phases_of_a_recorded_start() -> None:
    assert phases("ready") == ["start", "connect", "load", "warm-up", "ready"]
    assert phases("truncated") == ["start", "connect", "load"]


@pytest.mark.pain("P69")
def test_a_scheduler_that_failed_ends_the_wait_though_the_process_stays() -> None:
    lines = tuple((RECORDED / "truncated.log").read_text().splitlines())
    progress = Progress(Arguments("http://x", "m", **readiness.about_log()))
    progress = decide(progress, Look(1, RUNNING, 503, lines=lines)).progress
    assert decide(progress, Look(100, RUNNING, 503)).todo == "failed"
    event = {"event": "failed", "cause": "c", "telling": [line for _, line in progress.telling], "log": ["last"]}
    first, said, *_, last = readiness.story(event).splitlines()
    assert first == "c"
    assert "SafetensorError" in said
    assert last == "    | last"


def test_a_good_start_is_not_given_up() -> None:
    lines = tuple((RECORDED / "ready.log").read_text().splitlines())
    progress = Progress(Arguments("http://x", "m", **readiness.about_log()))
    assert decide(progress, Look(1, RUNNING, 503, lines=lines)).progress.fatal is None


def test_a_failure_that_the_log_does_not_explain() -> None:
    assert readiness.story({"event": "failed", "cause": "c", "telling": [], "log": []}) == "c"
