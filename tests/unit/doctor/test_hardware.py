"""What the doctor says of cards, bus, kernel log and boots: as the box sees them, and as its hypervisor does."""

from dataclasses import replace

import pytest

from gpubox import inventory
from gpubox.doctor import hardware
from gpubox.doctor.check import Check, exit_code
from gpubox.driver import kernel_log
from gpubox.driver.kernel_log import KernelLog
from gpubox.hosts import Box
from gpubox.onboard.state import Gpus
from tests.unit import simulated

REBOOT = "NVRM: Xid (PCI:0000:{}:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
LOST = "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
REFUSED = KernelLog(readable=False, why="dmesg: read kernel buffer failed: Operation not permitted")


@pytest.fixture(scope="module")
def box() -> Box:
    return inventory.load().box("gpu01")


def seen(described: str = "rtx-pro-6000-x8", *log: str) -> Gpus:
    gpus = simulated.box(described, "lxc").gpus
    return replace(gpus, kernel_log=kernel_log.parse(0, "\n".join(log)))


def told(checks: list[Check]) -> dict[str, str]:
    return {check.id: check.status for check in checks}


def test_nothing_is_wrong_with_eight_cards_and_a_silent_log(box: Box) -> None:
    found = hardware.checks(box, [("gpu01", seen()), ("pve01", seen())], container=True)
    assert told(found) == {"cards": "pass", "kernel-log": "pass"}
    assert found[0].found == "8 cards, nothing against them"


@pytest.mark.pain("P92")
def test_each_broken_card_is_a_line_and_the_others_are_counted(box: Box) -> None:
    found = hardware.checks(box, [("gpu01", seen("rtx-pro-6000-x8-lost"))], container=True)
    broken = [check for check in found if check.id == "cards.card-broken"]
    assert [check.status for check in broken] == ["fail", "fail"]
    assert "card 2 (0000:41:00.0)" in broken[0].found
    assert exit_code(found) == 1


@pytest.mark.pain("P91", "P92")
def test_the_hypervisors_log_counts_where_the_box_may_not_read_it(box: Box) -> None:
    inside = replace(seen("rtx-pro-6000-x8-lost"), kernel_log=REFUSED)
    found = hardware.checks(box, [("gpu01", inside), ("pve01", seen("rtx-pro-6000-x8-lost", LOST))], container=True)
    [line] = [check for check in found if check.id == "cards.kernel-log"]
    assert line.status == "fail"
    assert line.found.startswith("pve01: card 0000:41:00.0, Xid 79: the card fell off the bus")
    assert "power" in line.cure


def test_a_log_that_nobody_may_read_is_told(box: Box) -> None:
    inside = replace(seen(), kernel_log=REFUSED)
    found = hardware.checks(box, [("gpu01", inside)], container=True)
    assert told(found) == {"cards": "pass", "kernel-log": "warn"}
    assert "Operation not permitted" in found[-1].found


@pytest.mark.pain("P91")
def test_no_restart_is_a_cure_while_a_card_waits_for_a_reboot() -> None:
    checks = [
        Check("gpu01", "service", "fail", "sglang.service is failed", "", "restart it"),
        Check("gpu01", "endpoint", "fail", "no answer", "", "restart it"),
        Check("gpu01", "apt", "fail", "x", "", "the deploy"),
        Check("gpu01", "host", "pass", "x"),
    ]
    views = [("gpu01", replace(seen(), kernel_log=REFUSED)), ("pve01", seen("rtx-pro-6000-x8", REBOOT.format("01")))]
    found = hardware.without_restart(checks, views)
    assert [check.cure.startswith("no restart: card 0000:01:00.0") for check in found] == [True, True, False, False]
    assert "power cycle" in found[0].cure
    assert hardware.without_restart(checks, [("gpu01", seen())]) == checks


def test_an_old_line_of_a_card_that_answers_again_is_a_warning(box: Box) -> None:
    found = hardware.checks(box, [("pve01", seen("rtx-pro-6000-x8", LOST))], container=True)
    assert told(found)["cards.kernel-log"] == "warn"
    assert "at 31 °C now" in found[0].found


@pytest.mark.pain("P93")
@pytest.mark.parametrize(("container", "count"), [(False, 1), (True, 0)])
def test_a_machine_that_reset_itself_while_it_served(box: Box, container: bool, count: int) -> None:
    gpus = replace(seen(), boots="-1 1764428400.0 reset 1764428397.0\n")
    found = hardware.checks(box, [("gpu01", gpus)], container=container)
    resets = [check for check in found if check.id == "cards.machine-reset"]
    assert len(resets) == count
    for check in resets:
        assert "3 s before" in check.found
        assert "power limit" in check.cure


@pytest.mark.pain("P93")
def test_the_hypervisors_resets_are_put_beside_the_containers_serving(box: Box) -> None:
    inside = replace(seen(), boots="-1 1764428398.0 reset 1764428397.0\n")
    above = replace(seen(), boots="-1 1764428400.0 reset -\n")
    found = hardware.checks(box, [("gpu01", inside), ("pve01", above)], container=True)
    [check] = [check for check in found if check.id == "cards.machine-reset"]
    assert check.found.startswith("pve01 stopped at 2025-11-29")
