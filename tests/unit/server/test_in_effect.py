"""What stands beside a unit, in words."""

import pytest

from gpubox.remote.effective import Effective
from gpubox.server.in_effect import moved, standing, wrong

EDIT = {"path": "/etc/systemd/system/s.service.d/override.conf", "sets": ["ExecStart"], "restart": True}
LIMIT = {"path": "/run/systemd/system.control/s.service.d/50-CPUQuota.conf", "sets": ["CPUQuota"], "restart": False}
USER = {"path": "/etc/systemd/system/service.d/user.conf", "sets": ["User"], "severe": True}
PROXY = {"path": "/etc/systemd/system/service.d/proxy.conf", "sets": ["Environment"], "severe": False}


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (Effective(), []),
        (Effective(shared=[PROXY], manager=["X"], extra=["Y"]), []),
        (Effective(aside=[EDIT]), [f"{EDIT['path']} sets ExecStart, for s.service alone"]),
        (
            Effective(aside=[EDIT], differs=["ExecStart is a, not b"]),
            [f"{EDIT['path']} sets ExecStart, for s.service alone"],
        ),
        (Effective(shared=[USER]), [f"{USER['path']} sets User, against the unit of the release"]),
        (Effective(differs=["User is x, not nothing"]), ["systemd has loaded another unit: User is x, not nothing"]),
    ],
)
def test_what_is_wrong(found: Effective, lines: list[str]) -> None:
    assert wrong(found, "s.service") == lines


def test_what_goes_aside_says_where_and_what_it_costs() -> None:
    first, second = moved(Effective(aside=[EDIT, LIMIT]), "s.service")
    assert "it goes aside, below /var/lib/gpubox/kept; the server was started with it, and is started again" in first
    assert "started again" not in second
    assert "unit_settings" in second


def test_what_stays_is_told() -> None:
    lines = standing(Effective(shared=[USER, PROXY], manager=["http_proxy"], extra=["NCCL_DEBUG"]), "s.service")
    assert [line.split(" ")[0] for line in lines] == [PROXY["path"], "systemd", "the"]
    assert "http_proxy (systemctl show-environment)" in lines[1]
    assert "NCCL_DEBUG, which nothing sets now" in lines[2]
