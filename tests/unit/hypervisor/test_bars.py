"""Memory windows of cards: one of equal ones that got none, or a small one."""

import pytest

from gpubox.hypervisor import bars

BIG = "0x0000090000000000 0x0000091fffffffff 0x000000000014220c"
SMALL = "0x00000000d0000000 0x00000000dfffffff 0x000000000014220c"
NONE = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
UNSET = "0x0000000000000000 0x0000001fffffffff 0x000000002014220c"


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ([BIG, BIG, BIG, BIG], []),
        ([BIG, BIG, NONE, BIG], ["0000:03:00.0 got no memory window"]),
        ([BIG, UNSET, BIG, BIG], ["0000:02:00.0 got no memory window"]),
        ([BIG, BIG, BIG, SMALL], ["0000:04:00.0 has a memory window (BAR1) of 256 MiB, equal cards have 128 GiB"]),
        ([SMALL, SMALL], []),
        ([], []),
    ],
)
@pytest.mark.pain("P104")
def test_the_odd_card_is_named(windows: list[str], said: list[str]) -> None:
    listing = "".join(f"0000:{n:02x}:00.0 0x2bb5 {window}\n" for n, window in enumerate(windows, 1))
    lines = bars.odd(bars.parse(listing))
    assert len(lines) == len(said)
    for line, words in zip(lines, said, strict=True):
        assert words in line


def test_cards_of_two_kinds_are_not_compared() -> None:
    assert bars.odd(bars.parse(f"0000:01:00.0 0x2bb5 {BIG}\n0000:02:00.0 0x2684 {SMALL}\n")) == []


@pytest.mark.parametrize("line", ["", "0000:01:00.0", "0000:01:00.0 0x2bb5 x y z", "Last login: Mon Dec 7"])
def test_a_foreign_line_is_left_out(line: str) -> None:
    assert bars.parse(line) == []
