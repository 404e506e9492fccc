"""A row of a record out of one result of SGLang's bench_serving, whose keys differ a little from release to release."""

from __future__ import annotations

from math import isfinite
from typing import Any

_LATENCIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_ms": "e2e_latency"}


def row_of(result: dict[str, Any], prompts: int | None = None) -> dict[str, Any]:
    """The row as the record's schema names it; what the result lacks is None. Units: tokens, seconds, milliseconds.

    `prompts`: how many requests were sent, where that is known better than from the result's own list of errors.
    """
    result = {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in result.items()}
    if prompts is None and isinstance(result.get("errors"), list):
        prompts = len(result["errors"])
    completed = result.get("completed")
    output, duration = result.get("output_throughput"), result.get("duration")
    total = result.get("total_throughput")
    if total is None and _is_number(output) and _is_number(result.get("input_throughput")):
        total = output + result["input_throughput"]
    return {
        "concurrency": result.get("max_concurrency"),
        "input_tokens": result.get("random_input_len"),
        "output_tokens": result.get("random_output_len"),
        "prompts": prompts,
        "completed": completed,
        "duration_s": duration,
        "output_tok_s": output,
        "total_tok_s": total,
        "requests_s": result.get("request_throughput"),
        **{name: _latency(result, key) for name, key in _LATENCIES.items()},
        **_status(prompts, completed, result.get("errors") or []),
    }


def _latency(result: dict[str, Any], key: str) -> dict[str, float | None] | None:
    values = {name: result.get(f"{name}_{key}_ms") for name in ("mean", "median", "p99")}
    return values if any(value is not None for value in values.values()) else None


def _status(prompts: Any, completed: Any, errors: list[Any]) -> dict[str, str | None]:
    if not _is_number(prompts) or not _is_number(completed) or completed >= prompts:
        return {"status": "complete", "problem": None}
    first = next((str(error).strip() for error in errors if error), "no reason given")
    said = f"{prompts - completed} of {prompts} requests failed: {first.splitlines()[-1][:300]}"
    return {"status": "partial" if completed else "failed", "problem": said}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
