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
        ([(0, BAD), (5, GOOD)], None, "no answer before or after: 1 good ones, 1 failed"),
        ([(0, GOOD), (5, BAD)], None, "no answer before or after"),
        ([], None, "no downtime: 0 answers"),
    ],
)
def test_downtime(seen: list[tuple[float, bool]], downtime_s: float | None, told: str) -> None:
    found = summary(seen)
    assert found["downtime_s"] == downtime_s
    assert said(found).startswith(told)
