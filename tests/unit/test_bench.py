"""The sweep end to end: the real runner, real processes, a server that misbehaves, a stand-in for SGLang's client.

Slow for unit tests (half a minute on two busy cores), because how processes end is what is tested here.
"""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from typing_extensions import override

from gpubox.bench import record as records
from gpubox.bench import report, summary, sweep
from gpubox.bench.compare import compare
from gpubox.bench.fold import fold_file
from gpubox.bench.place import Place, here
from gpubox.bench.record import Record
from gpubox.bench.runner import Runner
from gpubox.cli.bench import command
from gpubox.remote import secrets
from gpubox.remote.bench import recorded
from gpubox.remote.bench.plan import Plan
from gpubox.support.errors import GpuboxError

CASES = Path(__file__).parent.parent / "cases" / "bench"
BENCH = ["--concurrency", "1,2", "--output-tokens", "4", "--repeat", "2", "--patience", "1"]


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def python(tmp_path: Path) -> str:
    return standing_in(tmp_path, sys.executable)


def standing_in(tmp_path: Path, python: str) -> str:
    """A Python that has the stand-in client, and takes the misbehaving server for sglang.launch_server."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sglang").symlink_to(CASES / "standin" / "sglang")
    launch = tmp_path / "python"
    launch.write_text(
        f"#!/bin/sh\nexport PYTHONPATH={tmp_path}/site PYTHONDONTWRITEBYTECODE=1\n"
        f'if [ "$2" = sglang.launch_server ]; then shift 2; exec {sys.executable} {CASES}/server.py "$2" "$4" $6; fi\n'
        f'exec {python} "$@"\n'
    )
    launch.chmod(0o755)
    return str(launch)


def bench(python: str, port: int, mode: str, runs: Path, *more: str) -> tuple[Result, Record]:
    server = ["--", "--port", str(port), "--mode", mode, "--api-key", "topsecret"]
    words = ["--local", "--python", python, "--runs", str(runs), *BENCH, *more, *server]
    result = CliRunner().invoke(command, words)
    (folder,) = runs.iterdir()
    return result, records.load(folder / "record.json")


def test_a_good_server_gives_a_whole_record(remote_python: str, port: int, tmp_path: Path) -> None:
    result, record = bench(standing_in(tmp_path, remote_python), port, "good", tmp_path / "runs")
    assert (result.exit_code, record.verdict, record.problem) == (0, "complete", None)
    assert [(row.concurrency, row.repeat, row.prompts, row.completed) for row in record.rows] == [
        (1, 1, 2, 2),
        (2, 1, 4, 4),
        (1, 2, 2, 2),
        (2, 2, 4, 4),
    ]
    assert len({row.seed for row in record.rows}) == 4
    assert record.warm_ups is not None
    shapes = [(one.concurrency, one.input_tokens, one.output_tokens, one.requests) for one in record.warm_ups]
    assert shapes == [(1, 256, 4, 2), (2, 256, 4, 2)]
    assert "warm-up: each of 2 shapes, 4 requests in " in result.output
    assert record.server.cap == 4
    assert record.rows[0].cards is None
    assert str(record.machine.cards_note).startswith("not measured")
    raw = next((tmp_path / "runs").iterdir()) / "raw"
    assert "secret" not in (raw / "r1-c1.jsonl").read_text()
    assert fold_file(Record(id="x", label="x"), raw / "events.jsonl").rows == record.rows
    assert fold_file(Record(id="x", label="x"), raw / "events.jsonl").warm_ups == record.warm_ups


@pytest.mark.parametrize(
    ("mode", "code", "verdict", "told"),
    [
        ("errors", 1, "failed", "HTTP Error 500"),
        ("some-errors", 1, "failed", "requests failed: HTTP Error 500"),
        ("slow", 1, "failed", "the server streams, but too slowly"),
        ("hangs", 1, "failed", "the server hangs: no token came"),
        ("dies", 1, "failed", "the server ended with exit code 9"),
        ("nonsense", 1, "failed", "wrong answer before the sweep: answered one token 8 times"),
        ("empty", 1, "failed", "answered nothing"),
        ("not-sglang", 2, "cannot tell", "no SGLang server"),
    ],
)
def test_a_bad_server_gets_a_verdict(
    python: str, port: int, tmp_path: Path, mode: str, code: int, verdict: str, told: str
) -> None:
    result, record = bench(python, port, mode, tmp_path / "runs", "--repeat", "1")
    assert (result.exit_code, record.verdict) == (code, verdict)
    assert told in str(record.problem)
    assert told in result.output
    assert {(row.input_tokens, row.output_tokens) for row in record.rows} <= {(256, 4)}
    assert all(row.status != "complete" for row in record.rows if row.completed != row.prompts)


def test_a_dying_server_leaves_its_last_words_without_secrets(python: str, port: int, tmp_path: Path) -> None:
    _, record = bench(python, port, "dies", tmp_path / "runs", "--repeat", "1")
    assert "server: Scheduler hit an exception: api_key='(secret)'" in record.notes
    assert record.rows[-1].status == "partial"


def test_a_server_elsewhere_that_dies_is_gone_and_its_failures_are_no_results(
    python: str, port: int, tmp_path: Path
) -> None:
    server = subprocess.Popen([sys.executable, str(CASES / "server.py"), str(port), "dies", "topsecret"])
    words = ["--url", f"http://127.0.0.1:{port}", "--python", python, "--runs", str(tmp_path / "runs"), *BENCH]
    result = CliRunner().invoke(command, words)
    server.wait()
    (folder,) = (tmp_path / "runs").iterdir()
    record = records.load(folder / "record.json")
    assert (result.exit_code, record.verdict) == (1, "failed")
    assert "the server no longer answers: [Errno 111] Connection refused" in str(record.problem)
    assert [(row.concurrency, row.status) for row in record.rows] == [(1, "complete"), (2, "partial")]
    assert (record.rows[-1].completed or 0) < 4
    assert record.rows[-1].output_tok_s is None
    # of two clients, one may have been in the middle of its request
    assert re.search("Connection refused|ConnectionError: (Remote end|cut off)", str(record.rows[-1].problem))
    assert record.server.argv == ["--model-path", "/nowhere", "--api-key", "(secret)"]
    assert "topsecret" not in records.dumps(record)


def test_no_key_stays_in_the_record_or_beside_it(python: str, port: int, tmp_path: Path) -> None:
    _, record = bench(python, port, "good", tmp_path / "runs", "--repeat", "1")
    assert record.server.argv is not None
    assert "(secret)" in record.server.argv
    assert (record.server.server_args or {})["api_key"] == "(secret)"
    kept = [path for path in (tmp_path / "runs").rglob("*") if path.is_file() and path.name != "server.log"]
    assert not [path for path in kept if b"topsecret" in path.read_bytes()]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_leaves_a_whole_record_and_no_server(
    how: signal.Signals, python: str, port: int, tmp_path: Path
) -> None:
    words = ["bench", "--local", "--python", python, "--runs", str(tmp_path / "runs"), *BENCH, "--repeat", "1000", "--"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gpubox.cli", *words, "--port", str(port), "--mode", "good"],
        stderr=subprocess.PIPE,
        text=True,
        # a shell that runs the tests in the background hands down an ignored SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    next(line for line in process.stderr if "row 2/" in line)
    process.send_signal(how)
    process.stderr.read()
    assert process.wait() == 1
    (folder,) = (tmp_path / "runs").iterdir()
    record = records.load(folder / "record.json")
    assert record.verdict == "interrupted"
    assert len(record.rows) >= 2
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_plain_files_come_from_the_box_and_nothing_else(tmp_path: Path) -> None:
    (box := tmp_path / "box").mkdir()
    (box / "row.jsonl").write_text("{}")
    (box / "runner.zip").write_text("ours")
    (box / "link").symlink_to("/etc/passwd")
    (box / "below").mkdir()
    (box / "below/row.jsonl").write_text("{}")
    (here := tmp_path / "here").mkdir()
    sweep._fetch(cast(Any, SimpleNamespace(command=lambda words: words)), str(box), here)
    assert {path.name: path.read_text() for path in here.iterdir()} == {"row.jsonl": "{}"}


def test_pressed_twice_ctrl_c_costs_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Runner):
        def __init__(self, *_: object) -> None:
            (tmp_path / "runner.err").touch()

        @override
        def events(self) -> Iterator[dict[str, Any]]:
            raise KeyboardInterrupt

        @override
        def stop(self) -> None:
            pass

        end = stop

    monkeypatch.setattr(sweep, "Runner", Interrupted)
    said: list[dict[str, Any]] = []
    plan = Plan(str(tmp_path), "http://127.0.0.1:1", [1], 8, 8, prompts_per_client=1, repeat=1, patience_s=1)
    sweep.measure(here(sys.executable), plan, sweep.blank(tmp_path, "x"), tmp_path, said.append)
    assert records.load(tmp_path / "record.json").verdict == "interrupted"
    assert said == [{"event": "stopping"}]


def test_a_python_without_sglang_cannot_tell(port: int, tmp_path: Path) -> None:
    result, record = bench(sys.executable, port, "good", tmp_path / "runs")
    assert (result.exit_code, record.verdict) == (2, "cannot tell")
    assert "cannot import sglang.bench_serving" in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give a HOST, or --url with --python"),
        (["--local"], "--local needs --python"),
        (["--url", "localhost:1", "--python", sys.executable], "starts with http"),
        (["a", "b"], "one HOST, not 2"),
        (["gpu99"], "no GPU box 'gpu99'"),
        (["gpu01", "--concurrency", "1,x"], "positive whole numbers"),
        (["gpu01", "--concurrency", "0"], "positive whole numbers"),
        (["gpu01", "--label", "../x"], "letters, digits"),
        (["--local", "--python", sys.executable, "--", "--port", "x"], "--port x"),
        (["--local", "--python", sys.executable, "--", "--port=99999"], "1 to 65535"),
    ],
)
def test_wrong_words_are_explained(words: list[str], told: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--runs", str(tmp_path / "runs"), *words])
    assert result.exit_code in {1, 2}
    assert told in result.output
    assert not (tmp_path / "runs").exists()


def test_a_full_disk_leaves_the_record_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    records.save(Record(id="a", label="before"), path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GpuboxError, match="No space left"):
        records.save(Record(id="a", label="after"), path)
    assert records.load(path).label == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_words_survive_the_way_through_ssh() -> None:
    place = Place("x", "/p", ("ssh", "--", "host"))
    assert place.command(["a", "b c", "$d"]) == ["ssh", "--", "host", "a 'b c' '$d'"]
    assert Place("x", "/p").command(["a b"]) == ["a b"]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--api-key", "abc", "--tp", "8"], ["--api-key", "(secret)", "--tp", "8"]),
        (["--api-key=abc"], ["--api-key=(secret)"]),
        (["--admin-api-key", "abc"], ["--admin-api-key", "(secret)"]),
        (["--max-total-tokens", "5"], ["--max-total-tokens", "5"]),
    ],
)
def test_keys_on_a_command_line_are_masked(words: list[str], kept: list[str]) -> None:
    assert secrets.argv(words) == kept


def test_of_an_environment_only_what_bears_on_serving_is_kept() -> None:
    given = {"HF_TOKEN": "x", "NCCL_P2P_LEVEL": "5", "SSH_CONNECTION": "1.2.3.4", "HOME": "/root"}
    assert recorded.environment(given) == {"HF_TOKEN": "(secret)", "NCCL_P2P_LEVEL": "5"}


def test_settings_reported_by_the_server_are_masked_and_plain() -> None:
    assert recorded.server_args({"api_key": "x", "max_total_tokens": 5, "states": [{}]}) == {
        "api_key": "(secret)",
        "max_total_tokens": 5,
    }


def test_a_record_of_a_newer_gpubox_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"schema_version": 3}))
    with pytest.raises(GpuboxError, match="update gpubox"):
        records.load(tmp_path / "r.json")


def test_a_record_from_before_warm_ups_were_recorded_is_read(tmp_path: Path) -> None:
    old = {"schema_version": 1, "id": "a", "label": "a", "rows": [{"concurrency": 1}]}
    (tmp_path / "r.json").write_text(json.dumps(old))
    found = records.load(tmp_path / "r.json")
    assert (found.warm_ups, summary.warm_up_words(found)) == (None, "not recorded")


@pytest.mark.parametrize(
    ("warm", "words", "is_warm"),
    [
        (None, "not recorded", None),
        ([], "none", False),
        ([(1, 9)], "not each of 2 shapes, 9 requests in 3 s", False),
        ([(1, 9), (8, None)], "not each of 2 shapes, 9 requests in 6 s", False),
        ([(1, 9), (8, 8)], "each of 2 shapes, 17 requests in 6 s", True),
    ],
)
def test_a_run_says_how_it_was_warmed_up(
    warm: list[tuple[int, int | None]] | None, words: str, is_warm: bool | None
) -> None:
    shape: dict[str, Any] = {"input_tokens": 4, "output_tokens": 4}
    ran = [records.WarmUp(concurrency=clients, requests=count, duration_s=3, **shape) for clients, count in warm or []]
    rows = [records.Row(concurrency=clients, output_tok_s=9, **shape) for clients in (1, 8)]
    record = Record(id="a", label="a", rows=rows, warm_ups=None if warm is None else ran)
    assert (summary.warm_up_words(record), summary.is_warm(record)) == (words, is_warm)
    every = [records.WarmUp(concurrency=clients, requests=9, **shape) for clients in (1, 8)]
    warmed = record.model_copy(update={"label": "b", "warm_ups": every})
    told = [caveat for caveat in compare(record, warmed).caveats if caveat.startswith("warm-up (")]
    assert bool(told) is (is_warm is not True)
    assert f"warm-up: {words}" in report.page([record])
