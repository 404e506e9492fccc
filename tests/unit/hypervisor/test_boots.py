"""How a machine's last boots ended, beside what served then."""

import subprocess
from pathlib import Path

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


@pytest.mark.pain("P93")
def test_login_records_where_there_is_no_journal(tmp_path: Path) -> None:
    """As `last -x --time-format iso` prints them: the second boot ended in a crash, the first was shut down."""
    printed = (
        "reboot   system boot  6.8.12-4-pve     2025-11-29T15:00:00+00:00   still running\n"
        "reboot   system boot  6.8.12-4-pve     2025-11-28T10:00:00+00:00 - crash\n"
        "shutdown system down  6.8.12-4-pve     2025-11-28T09:50:00+00:00 - 2025-11-28T10:00:00+00:00  (00:10)\n"
        "reboot   system boot  6.8.12-4-pve     2025-11-01T10:00:00+00:00 - 2025-11-28T09:50:00+00:00 (26+23:50)\n"
        "\nwtmp begins 2025-11-01T10:00:00+00:00\n"
    )
    (tmp_path / "last").write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\n")
    (tmp_path / "last").chmod(0o755)
    asked = boots.QUESTION.replace("/var/log/journal", str(tmp_path / "nowhere"))
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(["/bin/sh", "-c", asked], env={"PATH": path}, capture_output=True, text=True, check=True)
    ended = boots.parse(done.stdout)
    assert [boot.clean for boot in ended] == [False, True]
    near = boots.parse(boot(-1, ended[0].end - 60, "reset", ended[0].end - 70))
    assert boots.while_serving(ended, near)


@pytest.mark.parametrize("line", ["", "no journal of earlier boots", "-1 x clean -", "1 1.0 clean -", "-1 1.0 odd -"])
def test_a_foreign_line_is_left_out(line: str) -> None:
    assert boots.parse(line) == []
