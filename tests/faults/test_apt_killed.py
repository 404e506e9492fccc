"""A run killed at ten moments, and apt itself at three: the next run ends where an undisturbed one does."""

import time
from dataclasses import dataclass

import pytest

from tests.faults.packages import OLD_CARD, PackageBox, differences

MOMENTS = 10
APT_MOMENTS = {
    "while it downloads": "pgrep -f methods/htt[p]",
    "while it unpacks": "pgrep -x dpkg-deb || pgrep -f 'dpkg.*--unpac[k]'",
    "while it configures": "pgrep -f 'dpkg.*--configur[e]'",
}
KILL_APT = "pkill -KILL -x dpkg; pkill -KILL -x dpkg-deb; pkill -KILL -x apt-get; true"


@dataclass
class Undisturbed:
    """A run from a bare box that nothing disturbed."""

    seconds: float
    state: dict[str, list[str]]


@pytest.fixture(scope="module")
def undisturbed(package_box: PackageBox) -> Undisturbed:
    package_box.sees(OLD_CARD)
    begin_bare(package_box)
    begun = time.monotonic()
    package_box.converge().ended_well()
    return Undisturbed(time.monotonic() - begun, package_box.state())


def begin_bare(box: PackageBox) -> None:
    """Bare, and with nothing downloaded: what apt keeps of earlier tests lies outside the box's own disk."""
    box.bare()
    box.host.run_expect([0], "apt-get clean")


@pytest.mark.parametrize("moment", range(1, MOMENTS + 1))
def test_the_run_is_killed(package_box: PackageBox, undisturbed: Undisturbed, moment: int) -> None:
    begin_bare(package_box)
    package_box.killed_after(undisturbed.seconds * moment / (MOMENTS + 1))
    package_box.converge().ended_well()
    assert differences(undisturbed.state, package_box.state()) == []
    assert package_box.converge().ended_well().changed == []


@pytest.mark.parametrize("moment", APT_MOMENTS)
def test_apt_is_killed(package_box: PackageBox, undisturbed: Undisturbed, moment: str) -> None:
    begin_bare(package_box)
    # the brackets keep pgrep from finding the shell that asks
    wait = (
        f"for i in $(seq 6000); do if {APT_MOMENTS[moment]}; then {KILL_APT}; echo killed; exit; fi; sleep 0.05; done"
    )
    running = package_box.start()
    # what follows a package of CUDA, which are the largest: the first ones are over before anything can be seen
    seen = "for i in $(seq 6000); do pgrep -f 'apt-ge[t].*cuda-toolkit' && break; sleep 0.1; done"
    assert "killed" in package_box.host.check_output(f"{seen}; {wait}")
    running.communicate()
    assert running.returncode == 1
    package_box.converge().ended_well()
    assert differences(undisturbed.state, package_box.state()) == []
    assert package_box.converge().ended_well().changed == []
