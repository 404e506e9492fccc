"""Other people's runs: server logs of several releases, results as text and as JSON lines."""

import shutil
from pathlib import Path

import pytest

from gpubox.bench import flags, readers
from gpubox.bench import record as records
from gpubox.bench.record import Latency, Record
from gpubox.support.errors import GpuboxError

CASES = Path(__file__).parent.parent / "cases" / "bench"


def test_the_settings_line_as_a_dataclass() -> None:
    server = readers.read(CASES / "dataclass.log").server
    args = server.server_args or {}
    assert (server.model, server.cap) == ("moonshotai/Kimi-K2-Thinking", 2048)
    assert args["api_key"] == "(secret)"
    assert (args["trust_remote_code"], args["tp_size"], args["cuda_graph_bs"]) == (True, 8, [1, 2, 4, 8])
    assert args["json_model_override_args"] == '{"a": [1, 2]}'
    assert args["mode"] == "null"
    assert args["preferred_sampling_params"] is None


def test_the_settings_line_as_a_dictionary() -> None:
    server = readers.read(CASES / "dictionary.log").server
    assert (server.model, server.cap) == ("tiny", 4)
    assert server.server_args == {
        "model_path": "/models/tiny",
        "served_model_name": "tiny",
        "api_key": "(secret)",
        "mem_fraction_static": 0.716,
        "max_running_requests": 4,
        "max_total_tokens": 16384,
        "cuda_graph_bs_decode": [1, 2],
        "lora_paths": None,
        "model_loader_extra_config": "{}",
    }


def test_the_log_tells_how_full_the_server_ran() -> None:
    assert readers.read(CASES / "dataclass.log").notes == [
        "its log: at best 5,816 tok/s in one decode line (1024 running, 16 waiting)",
        "its log: at most 1024 requests ran at once, at most 16 waited",
    ]


def test_a_table_as_bench_serving_prints_it() -> None:
    first, second = readers.read(CASES / "table.txt").rows
    assert (first.concurrency, first.input_tokens, first.output_tok_s, first.total_tok_s) == (32, 64, 1710.86, 3421.71)
    assert first.ttft_ms == Latency(mean=149.55, median=150.31, p99=224.13)
    assert first.itl_ms == Latency(median=13.17, p99=104.52)
    assert (first.status, first.problem) == ("partial", "6 of 96 requests failed: no reason given")
    assert (second.concurrency, second.completed, second.output_tok_s, second.status) == (None, 64, 11.2, "complete")


def test_lines_of_json() -> None:
    record = readers.read(CASES / "results.jsonl")
    first, second = record.rows
    assert (first.concurrency, first.total_tok_s, first.status) == (256, 26214.4, "complete")
    assert (second.status, second.problem) == ("partial", "1 of 2 requests failed: ConnectionError: gone")
    assert record.server.version == "0.5.16"
    assert "sk-not-for-you" not in records.dumps(record)


def test_a_folder_with_a_log_and_results_is_one_run(tmp_path: Path) -> None:
    for name in ("dataclass.log", "table.txt"):
        shutil.copy(CASES / name, tmp_path)
    (tmp_path / "README.md").write_text("how we did it")
    record = readers.read(tmp_path)
    assert (record.server.cap, len(record.rows), record.kind) == (2048, 2, "foreign")


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello", "[1, 2]", '{"a": 1}', "\0\1"),
        *("server_args=nothing", "server_args=ServerArgs(", "server_args={}"),
        '{"output_throughput": ' + "9" * 5000 + "}",
        '{"output_throughput": ' + "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_what_holds_no_run_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(GpuboxError, match="holds no run"):
        readers.read(tmp_path / "x")


def test_a_log_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("server_args=ServerArgs(model_path='m', tp_size=8, attention_ba")
    record = readers.read(tmp_path / "x.log")
    assert (record.server.server_args or {})["tp_size"] == 8
    assert record.notes == ["its log: the line of settings is cut off, so some are missing here"]


def test_settings_as_json_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text('server_args={"model_path": "m", "enable_x": true, "y": null, "z": false}\n')
    args = readers.read(tmp_path / "x.log").server.server_args
    assert args == {"model_path": "m", "enable_x": True, "y": None, "z": False}


@pytest.mark.parametrize("shape", ["{0}", "[{0}]"])
def test_a_result_that_somebody_made_readable(shape: str, tmp_path: Path) -> None:
    text = '{\n "max_concurrency": 4,\n "output_throughput": 5.5\n}'
    (tmp_path / "x.json").write_text(shape.format(text))
    (row,) = readers.read(tmp_path / "x.json").rows
    assert (row.concurrency, row.output_tok_s) == (4, 5.5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ('"output_throughput": "fast"', "output_tok_s: input should be a valid number, found 'fast'"),
        ('"completed": "x"', "completed: input should be a valid integer, found 'x'"),
        ('"max_concurrency": -1', "concurrency: input should be greater than or equal to 1, found -1"),
        ('"output_throughput": -5', "output_tok_s: input should be greater than or equal to 0, found -5"),
    ],
)
def test_a_result_that_makes_no_sense_is_refused_by_name(change: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"output_throughput": 5.0, "num_prompts": 3, "completed": 3, {change}}}\n')
    with pytest.raises(GpuboxError) as error:
        readers.read(tmp_path / "x.jsonl")
    assert told in error.value.message
    assert "x.jsonl" in error.value.message


def test_a_figure_that_is_no_number_was_not_measured(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"output_throughput": Infinity, "median_ttft_ms": NaN, "mean_ttft_ms": 2.0}\n')
    (row,) = readers.read(tmp_path / "x.jsonl").rows
    assert (row.output_tok_s, row.ttft_ms) == (None, Latency(mean=2.0))


def test_events_that_stop_without_a_verdict(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"event": "row", "concurrency": 1}\n{"event": "end"}\n{"event": "ro')
    assert readers.read(tmp_path).verdict == "failed"
    events.write_text('{"event": "row", "clients": 1}\n')
    with pytest.raises(GpuboxError, match=r"events\.jsonl: row event: "):
        readers.read(tmp_path)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = readers.read(CASES / "table.txt").model_copy(update={"probes": [records.Probe(when="before", text="x")]})
    records.save(record, tmp_path / "record.json")
    assert readers.read(tmp_path) == record


@pytest.mark.parametrize(
    ("argv", "settings"),
    [
        (["python", "-m", "sglang.launch_server", "--tp", "8"], {"tp-size": "8"}),
        (["--tp-size=8", "--trust-remote-code"], {"tp-size": "8", "trust-remote-code": "true"}),
        (["--cuda-graph-bs", "1", "2", "--port", "1", "--model", "m"], {"cuda-graph-bs": "1 2"}),
        (["python3", "-u", "-m", "sglang.launch_server"], {}),
    ],
)
def test_typed_settings(argv: list[str], settings: dict[str, str]) -> None:
    assert flags.typed(argv) == settings


def test_reported_settings_take_the_form_of_typed_ones() -> None:
    given = {
        "tp_size": 8,
        "trust_remote_code": True,
        "enable_x": False,
        "api": None,
        "cuda_graph_bs": [1, 2],
        "port": 3,
    }
    assert flags.reported(given) == {"tp-size": "8", "trust-remote-code": "true", "cuda-graph-bs": "1 2"}


def test_a_reported_setting_has_the_name_that_is_typed() -> None:
    assert flags.reported({"fp8_gemm_runner_backend": "cutlass"}) == {"fp8-gemm-backend": "cutlass"}


def test_of_many_reported_settings_only_the_wanted_ones_count() -> None:
    record = readers.read(CASES / "dataclass.log")
    assert flags.of(record, {"tp-size"}) == {"tp-size": "8"}
    assert flags.of(Record(id="x", label="x")) is None
