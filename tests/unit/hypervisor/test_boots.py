"""How a machine's last boots ended, beside what served then."""

import pytest

from gpubox.hypervisor import boots

T = 1764428400.0


def boot(number: int, end: float, how: str, served: float | None) -> str:
    return f"{number} {end:.6f} {how} {'-' if served is None else f'{served:.6f}'}\n"


@pytest.mark.parametrize(
    ("machine", "box", "serving"),
    [
        (boot(-1, T, "clean", T - 5), "", False),
        (boot(-1, T, "reset", None), "", False),
        (boot(-1, T, "reset", T - 3), "", True),
        (boot(-1, T, "reset", T - 7200), "", False),
        (boot(-1, T, "reset", None), boot(-2, T, "reset", T - 3), True),
        (boot(-1, T, "reset", None), boot(-2, T - 90000, "reset", T - 90003), False),
        ("", boot(-1, T, "reset", T), False),
    ],
)
@pytest.mark.pain("P93")
def test_an_end_without_shutdown_is_put_beside_the_serving(machine: str, box: str, serving: bool) -> None:
    assert boots.while_serving(boots.parse(machine), boots.parse(box)) is serving


@pytest.mark.pain("P93")
def test_each_such_end_has_its_time_and_the_servers_last_line() -> None:
    ended = boots.parse(
        boot(-1, T, "reset", T - 3) + boot(-2, T - 86400, "clean", None) + boot(-3, T - 9e5, "reset", None)
    )
    assert boots.resets("pve01", ended) == [
        "pve01 stopped at 2025-11-29 15:00:00 UTC without a shutdown; the model server's last line is 3 s before it",
        "pve01 stopped at 2025-11-19 05:00:00 UTC without a shutdown; no model server said anything shortly before",
    ]


@pytest.mark.parametrize("line", ["", "no journal of earlier boots", "-1 x clean -", "1 1.0 clean -", "-1 1.0 odd -"])
def test_a_foreign_line_is_left_out(line: str) -> None:
    assert boots.parse(line) == []
