"""A result of bench_serving as a row: what its first text hides is no time to the first token."""

from typing import Any

import pytest

from gpubox.remote.bench.row import row_of

Times = tuple[float, list[float], int]
SEEN: Times = (0.02, [0.004] * 255, 256)
"""Seconds to the first text, seconds of later tokens, tokens: as a request that streams from its first token on."""
HIDDEN: Times = (0.98, [], 256)
"""As recorded on the practice machine: 256 bytes that never became a character came all at once at the end."""
LATE: Times = (0.5, [0.004] * 128, 256)
DRAFTS: Times = (0.02, [0.004] * 250, 256)
FAILED: Times = (0.0, [], 0)
ONE_TOKEN: Times = (0.02, [], 1)


def result(*requests: Times) -> dict[str, Any]:
    firsts, later, tokens = (list(column) for column in zip(*requests, strict=True))
    mean = 1000 * sum(firsts) / len(firsts)
    return {
        "ttfts": firsts,
        "itls": later,
        "output_lens": tokens,
        "errors": ["" if each else "refused" for each in tokens],
        "median_ttft_ms": mean,
        "mean_ttft_ms": mean,
        "p99_ttft_ms": mean,
        "mean_tpot_ms": 1.9,
    }


@pytest.mark.parametrize(
    ("requests", "ttft", "note"),
    [
        ([SEEN, SEEN], 20.0, None),
        ([SEEN, HIDDEN], 20.0, "the first text of 1 of 2 requests"),
        ([HIDDEN, SEEN, SEEN, LATE], 20.0, "the first text of 2 of 4 requests"),
        ([DRAFTS, DRAFTS, SEEN], 20.0, None),
        ([FAILED, SEEN, HIDDEN], 20.0, "the first text of 1 of 2 requests"),
        ([ONE_TOKEN, ONE_TOKEN], 20.0, None),
        ([HIDDEN, HIDDEN], None, "the first text of 2 of 2 requests"),
    ],
)
def test_a_first_token_that_nobody_saw_is_no_figure(
    requests: list[Times], ttft: float | None, note: str | None
) -> None:
    row = row_of(result(*requests))
    assert (row["ttft_ms"] or {}).get("median") == (None if ttft is None else pytest.approx(ttft))
    assert str(row.get("note")).startswith(note or "None")
    if note and ttft:
        assert row["tpot_ms"] == {name: pytest.approx(4.0) for name in ("mean", "median", "p99")}
    if not note:
        assert row["tpot_ms"]["mean"] == 1.9


@pytest.mark.parametrize("lost", ["ttfts", "itls", "output_lens", "errors"])
def test_without_the_times_of_each_request_the_figures_stay(lost: str) -> None:
    given = {**result(SEEN, HIDDEN), lost: None}
    assert row_of(given)["ttft_ms"]["median"] == 500.0


def test_the_99th_percentile_lies_between_its_neighbours() -> None:
    requests = [(each / 1000, [0.004] * 255, 256) for each in range(1, 102)]
    row = row_of(result(*requests, HIDDEN))
    assert row["ttft_ms"] == {"mean": pytest.approx(51), "median": pytest.approx(51), "p99": pytest.approx(100)}
