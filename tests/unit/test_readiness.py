"""What the probe is told of the log, and what a failure tells people."""

from pathlib import Path

import pytest

from gpubox.remote.probe import FIRST_PHASE, Arguments, Look, Progress, Unit, decide
from gpubox.server import readiness

RECORDED = Path(__file__).parent.parent / "cases/verdict"
RUNNING = Unit("active", "running", "success", 0, "0")


def phases(lines: list[str]) -> list[str]:
    progress = Progress(Arguments("http://x", "m", "u", **readiness.about_log()))
    seen = [progress.phase]
    for line in lines:
        progress = decide(progress, Look(1, RUNNING, 503, lines=(line,))).progress
        seen += [progress.phase] if progress.phase != seen[-1] else []
    return seen


START = ["import", "connect", "load", "warm-up", "up"]


@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("ready", START),
        ("unknown-flag", START[:1]),
        ("missing-model", START[:1]),
        ("no-device", START[:2]),
        ("truncated", START[:3]),
        ("port-used", START),  # the warm-up of SGLang itself was answered by the server that holds the port
    ],
)
def test_phases_of_recorded_starts(name: str, reached: list[str]) -> None:
    assert phases((RECORDED / f"{name}.log").read_text().splitlines()) == reached


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("", "import"),
        ("[TP3] Init torch distributed begin.", "connect"),
        ("[TP0] Load weight begin. avail mem=94.10 GB", "load"),
        ("[TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=8.38 GB", "capture"),
        ("[TP0] Running FlashInfer autotune with cache: /root/.cache/sglang/x.json", "capture"),
        ("INFO:     Application startup complete.", "warm-up"),
        ("The server is fired up and ready to roll!", "up"),
    ],
)
def test_phases(line: str, phase: str) -> None:
    assert phases([line])[-1] == phase


def test_a_phase_never_goes_back() -> None:
    lines = ["TP0 Capture target decode CUDA graph begin. backend=full", "TP1 Load weight begin. avail mem=94.00 GB"]
    assert phases(lines)[-1] == "capture"


def test_each_limit_is_that_of_a_phase() -> None:
    known = {name for name, _ in readiness.about_log()["phases"]} | {FIRST_PHASE}
    assert readiness.LIMITS_S.keys() <= known


@pytest.mark.pain("P69")
def test_a_scheduler_that_failed_ends_the_wait_though_the_process_stays() -> None:
    lines = tuple((RECORDED / "truncated.log").read_text().splitlines())
    progress = Progress(Arguments("http://x", "m", "u", **readiness.about_log()))
    progress = decide(progress, Look(1, RUNNING, 503, lines=lines)).progress
    assert decide(progress, Look(100, RUNNING, 503)).todo == "failed"
    event = {"event": "failed", "cause": "c", "telling": [line for _, line in progress.telling], "log": ["last"]}
    first, said, *_, last = readiness.story(event).splitlines()
    assert first == "c"
    assert "SafetensorError" in said
    assert last == "    | last"


def test_a_good_start_is_not_given_up() -> None:
    lines = tuple((RECORDED / "ready.log").read_text().splitlines())
    progress = Progress(Arguments("http://x", "m", "u", **readiness.about_log()))
    assert decide(progress, Look(1, RUNNING, 503, lines=lines)).progress.fatal is None


def test_a_failure_that_the_log_does_not_explain() -> None:
    assert readiness.story({"event": "failed", "cause": "c", "telling": [], "log": []}) == "c"
