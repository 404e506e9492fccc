"""A row of a record out of one result of SGLang's bench_serving, whose keys differ a little from release to release."""

from __future__ import annotations

from math import isfinite
from statistics import mean, median
from typing import Any

_HELD_BACK = 8
"""Tokens more than usual that may come with the first text: drafts of speculative decoding come several at once."""
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
        **_without_held_back(result),
        **_status(prompts, completed, result.get("errors") or []),
    }


def _latency(result: dict[str, Any], key: str) -> dict[str, float | None] | None:
    values = {name: result.get(f"{name}_{key}_ms") for name in ("mean", "median", "p99")}
    return values if any(value is not None for value in values.values()) else None


def _without_held_back(result: dict[str, Any]) -> dict[str, Any]:
    """Times to and after the first token again, without the requests whose first token nobody saw.

    bench_serving takes the first text for the first token. A server holds text back that is no whole character yet, and
    where random prompts are answered in bytes that never become one, that is the whole answer: its time to the first
    token is then the time of all tokens, and its time per token almost 0. Nothing where all first tokens were seen, or
    where the result has not the times of each request.
    """
    requests = _requests(result)
    usual = min((one.at_once for one in requests), default=0)
    seen = [one for one in requests if one.later and one.at_once <= usual + _HELD_BACK]
    lost = len(requests) - len(seen)
    if not lost:
        return {}
    return {
        "ttft_ms": _summary([1000 * one.first_s for one in seen]),
        "tpot_ms": _summary([1000 * sum(one.later) / len(one.later) for one in seen]),
        "note": f"the first text of {lost} of {len(requests)} requests came late in the answer: not in TTFT and TPOT",
    }


class _Request:
    """One request that was answered with more than one token."""

    def __init__(self, first_s: float, later: list[float], tokens: int) -> None:
        self.first_s, self.later, self.at_once = first_s, later, tokens - len(later)
        """Seconds to the first text, seconds of each token after it, and tokens that came with it."""


def _requests(result: dict[str, Any]) -> list[_Request]:
    keys = ("ttfts", "itls", "output_lens", "errors")
    columns = [result.get(key) for key in keys]
    if not all(isinstance(column, list) for column in columns):
        return []
    found = []
    for first, later, tokens, error in zip(*columns):
        if not error and _is_number(first) and isinstance(later, list) and _is_number(tokens) and tokens > 1:
            found.append(_Request(first, later, tokens))
    return found


def _summary(values: list[float]) -> dict[str, float] | None:
    """Mean, median and 99th percentile, between two values by their distance; None: there are none."""
    if not values:
        return None
    ordered = sorted(values)
    place = 0.99 * (len(ordered) - 1)
    below = ordered[int(place)]
    above = ordered[min(int(place) + 1, len(ordered) - 1)]
    p99 = below + (above - below) * (place - int(place))
    return {"mean": mean(ordered), "median": median(ordered), "p99": p99}


def _status(prompts: Any, completed: Any, errors: list[Any]) -> dict[str, str | None]:
    if not _is_number(prompts) or not _is_number(completed) or completed >= prompts:
        return {"status": "complete", "problem": None}
    first = next((str(error).strip() for error in errors if error), "no reason given")
    said = f"{prompts - completed} of {prompts} requests failed: {first.splitlines()[-1][:300]}"
    return {"status": "partial" if completed else "failed", "problem": said}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
