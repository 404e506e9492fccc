"""Downtime from the answers of a client."""

import pytest

from gpubox.operations.watch import said
from gpubox.remote.watch import summary

GOOD, BAD = True, False


@pytest.mark.parametrize(
    ("seen", "downtime_s", "told"),
    [
        ([(0, GOOD), (1, GOOD)], None, "no downtime: 2 answers, none failed"),
        ([(0, GOOD), (1, BAD), (3, BAD), (7.25, GOOD), (8, GOOD)], 7.2, "downtime 7.2 s"),
        ([(0, GOOD), (1, BAD), (2, GOOD), (3, BAD), (9, GOOD)], 7, "downtime 7 s"),
        ([(0, BAD), (5, GOOD)], None, "the first answer came after 5 s; nothing answered before, so no client lost"),
        ([(0, BAD), (2, BAD)], None, "nothing answered, before this run or in it"),
        (
            [(0, GOOD), (5, BAD), (7, BAD)],
            None,
            "clients are without an answer for 7 s now: the server answered before",
        ),
        ([], None, "no downtime: 0 answers"),
    ],
)
def test_downtime(seen: list[tuple[float, bool]], downtime_s: float | None, told: str) -> None:
    found = summary(seen)
    assert found["downtime_s"] == downtime_s
    assert said(found).startswith(told)
