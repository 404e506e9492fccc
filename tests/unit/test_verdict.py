"""The log verdict on recorded logs of SGLang 0.5.23 (tests/cases/verdict) and on lines quoted in public threads."""

import re
from pathlib import Path

import pytest

from gpubox.server import verdict

CASES = Path(__file__).parent.parent / "cases/verdict"

RECORDED = {  # log: headline (None: nothing fatal), slow
    "ready": (None, {"no-graphs"}),
    "unknown-flag": ("unknown-flag", set()),
    "renamed-flag": ("unknown-flag", set()),
    "bad-choice": ("unknown-choice", set()),
    "missing-model": ("no-such-model", set()),
    "missing-model-hub": ("model-not-fetched", set()),
    "truncated": ("short-shard", set()),
    "no-device": ("torch-without-cuda", set()),
    "port-used": ("address-in-use", {"no-graphs"}),
    "unknown-arch": ("model-unknown-to-sglang", set()),
    "unknown-type": ("transformers-too-old", set()),
    "scheduler-killed": ("host-memory", {"no-graphs"}),
}

LINES = [line.split("\t") for line in (CASES / "lines.txt").read_text().splitlines()]


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.pain("P45", "P87", "P89")
def test_recorded_logs(name: str) -> None:
    headline, slow = RECORDED[name]
    log = (CASES / f"{name}.log").read_text().splitlines()
    found = verdict.judge(log)
    assert next((f.known.id for f in found if f.known.kind == "fatal"), None) == headline
    assert {f.known.id for f in found if f.known.kind == "slow"} == slow
    assert (verdict.cause(log) is None) == (headline is None)


def test_every_recorded_log_is_tested() -> None:
    assert {path.stem for path in CASES.glob("*.log")} == RECORDED.keys()


@pytest.mark.parametrize(("known", "line"), LINES)
@pytest.mark.pain("P05", "P19", "P27", "P34", "P41", "P44", "P49", "P54", "P57", "P59", "P66", "P85", "P87")
@pytest.mark.pain("P95", "P100")
def test_lines_from_threads(known: str, line: str) -> None:
    assert [finding.known.id for finding in verdict.judge([line])] == [known]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[2026-11-29 15:18:05] max_total_num_tokens=16384, chunked_prefill_size=4096, max_running_requests=4096",
        '[2026-11-29 15:18:06] INFO:     127.0.0.1:47204 - "POST /generate HTTP/1.1" 200 OK',
        '    raise LocalEntryNotFoundError("x")',
        "[2026-11-29 15:18:05] FlashInfer autotune completed.",
    ],
)
def test_ordinary_lines_say_nothing(line: str) -> None:
    assert verdict.judge([line]) == []


@pytest.mark.pain("P69")
def test_the_particular_cause_comes_before_the_general_one() -> None:
    log = [
        "Received sigquit from a child process.",
        "Scheduler hit an exception: x",
        "CUDA out of memory",
        "falling back to y",
    ]
    assert [finding.known.id for finding in verdict.judge(log)] == [
        "gpu-memory",
        "scheduler-exception",
        "child-failed",
        "fallback",
    ]


def test_repeated_lines_count() -> None:
    (found,) = verdict.judge(["TP0 CUDA out of memory", "TP1 CUDA out of memory"])
    assert (found.count, found.text) == (2, "TP0 CUDA out of memory")


def test_the_table_is_sound() -> None:
    known = verdict.table().lines
    assert len({line.id for line in known}) == len(known)
    for line in known:
        re.compile(line.pattern)
        assert line.source.startswith(("https://", "seen with ", "read in "))
