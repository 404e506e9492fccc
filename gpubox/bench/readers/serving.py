"""What SGLang's bench_serving wrote: lines of JSON, or the text table that it prints."""

import itertools
import json
import re
from typing import Any

from gpubox.bench.record import Row, Server
from gpubox.remote.bench import recorded
from gpubox.remote.bench.row import row_of
from gpubox.support.data import validated

_TABLE = "Serving Benchmark Result"
_LINE = re.compile(r"^(?P<name>[A-Z][^:\n]*?):\s+(?P<value>[\d.,]+|inf|not set|\S+)\s*$", re.MULTILINE)
_ARGS = re.compile(r"Namespace\((?P<body>.*)\)")
_NAMES = {
    "max request concurrency": "max_concurrency",
    "benchmark duration (s)": "duration",
    "successful requests": "completed",
    "request throughput (req/s)": "request_throughput",
    "input token throughput (tok/s)": "input_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_throughput",
}
_LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "inter-token latency": "itl", "e2e latency": "e2e_latency"}
_WANTED = re.compile(r"(random_input_len|random_output_len|num_prompts|max_concurrency)=(\d+)")


def rows(text: str) -> list[Row]:
    """The results in the text, in order; empty: there are none."""
    results = _from_json(text) or _from_tables(text)
    return [validated(Row, row_of(result, result.get("num_prompts")), "bench_serving's result") for result in results]


def server(text: str) -> Server:
    """What the results tell about the server: newer releases put its settings into their JSON lines."""
    for result in reversed(_from_json(text)):
        info = result.get("server_info")
        if isinstance(info, dict):
            model = info.get("served_model_name") or info.get("model_path")
            args, version = recorded.server_args(info), info.get("version")
            return Server(model=model, version=str(version) if version else None, server_args=args)
    return Server()


def _from_json(text: str) -> list[dict[str, Any]]:
    """From lines of JSON, or one JSON text over several lines that holds a result or a list of them."""
    lines = [value for line in text.splitlines() if line.startswith("{") and (value := _json(line)) is not None]
    whole = _json(text) if not lines and text.lstrip()[:1] in {"{", "["} else None
    values = lines or (whole if isinstance(whole, list) else [whole])
    return [value for value in values if isinstance(value, dict) and "output_throughput" in value]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _from_tables(text: str) -> list[dict[str, Any]]:
    parts = re.split(rf"=+ *{_TABLE} *=+", text)
    return [{**_wishes(before), **_table(part)} for before, part in itertools.pairwise(parts)]


def _wishes(before: str) -> dict[str, Any]:
    """How it was called, where that was printed before the table."""
    calls = _ARGS.findall(before)
    return {name: int(value) for name, value in _WANTED.findall(calls[-1])} if calls else {}


def _table(part: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for match in _LINE.finditer(part.partition("\n====")[0]):
        name, value = match["name"].strip().lower(), _number(match["value"])
        if value is not None and (key := _NAMES.get(name) or _latency(name)):
            found[key] = int(value) if key in {"completed", "max_concurrency"} else value
    return found


def _latency(name: str) -> str | None:
    match = re.match(r"(mean|median|p99) (.+) \(ms\)$", name)
    return f"{match[1]}_{_LATENCIES[match[2]]}_ms" if match and match[2] in _LATENCIES else None


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
