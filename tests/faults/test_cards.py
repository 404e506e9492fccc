"""Cards that break, a kernel log that says so, a container that stopped by itself: what the doctor makes of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.lab import lifecycle
from tests.deploy import Run
from tests.faults import onboarding
from tests.faults.packages import LABS_CARD

LOG = "/usr/local/bin/dmesg"
"""Before the real one in PATH: nothing is written into the kernel log of the machine that all of this runs on."""
LOST = "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
REBOOT = "NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"


@pytest.fixture
def broken(gpu01: Box, deploy: Callable[[], Run]) -> Iterator[None]:
    """gpu01 with two broken cards of eight; whole again afterwards."""
    lifecycle.give_hardware(gpu01.name, "rtx-pro-6000-x8-lost")
    yield
    lifecycle.give_hardware(gpu01.name, LABS_CARD)
    deploy().ended_well()


@pytest.fixture
def log(on_hypervisor: Host) -> Iterator[None]:
    """The hypervisor's kernel log says that a card fell off, and what the driver asks for."""
    on_hypervisor.check_output('printf \'#!/bin/sh\\necho "%%s"\\necho "%%s"\\n\' %s %s >%s', LOST, REBOOT, LOG)
    on_hypervisor.check_output("chmod 755 %s", LOG)
    yield
    on_hypervisor.check_output("rm %s", LOG)


def doctor(boxes: Inventory, folder: Path) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Exit code, and the checks by id."""
    code, said = onboarding.gpubox(folder, "doctor", "gpu01", "--inventory", str(boxes.path), "--json")
    found: dict[str, list[dict[str, str]]] = {}
    for check in said["checks"]:
        found.setdefault(check["id"], []).append(check)
    return code, found


@pytest.mark.pain("P92")
def test_broken_cards_are_named_and_the_rest_is_judged(broken: None, boxes: Inventory, tmp_path: Path) -> None:
    code, found = doctor(boxes, tmp_path)
    assert code == 1
    assert [check["status"] for check in found["cards.card-broken"]] == ["fail", "fail"]
    assert "card 2 (0000:41:00.0) is broken: GPU is lost" in found["cards.card-broken"][0]["found"]
    assert "card 5 (0000:a1:00.0) is broken: Unknown Error" in found["cards.card-broken"][1]["found"]
    assert {check["status"] for name in ("host", "cuda", "venv", "model") for check in found[name]} == {"pass"}


@pytest.mark.pain("P91")
def test_the_hypervisors_kernel_log_is_read(log: None, boxes: Inventory, tmp_path: Path) -> None:
    code, found = doctor(boxes, tmp_path)
    assert code == 1
    texts = " | ".join(f"{check['found']} {check['cure']}" for check in found["cards.kernel-log"])
    assert "Xid 154: the driver asks for a reboot of the machine" in texts
    assert "Xid 79: the card fell off the bus" in texts
    assert "take that machine's power away" in texts


@pytest.fixture
def journal(on_box: Host, deploy: Callable[[], Run]) -> Iterator[None]:
    """gpu01 keeps its journal over its end; afterwards it runs and does not any more."""
    keeps = on_box.file("/var/log/journal").exists
    on_box.run_expect([0], "mkdir -p /var/log/journal; systemctl restart systemd-journald; journalctl --flush")
    yield
    deploy()
    deploy().ended_well()
    if not keeps:
        on_box.run_expect([0], "rm -r /var/log/journal; systemctl restart systemd-journald")


@pytest.mark.pain("P107")
def test_a_container_that_stopped_by_itself_is_started_and_it_is_said_why(
    journal: None, boxes: Inventory, on_box: Host, on_hypervisor: Host, deploy: Callable[[], Run], tmp_path: Path
) -> None:
    """What a scheduler does that outlived its launcher: SIGQUIT to the first process."""
    on_box.run("kill -QUIT 1")
    on_hypervisor.run("lxc-wait -n gpu01 -s STOPPED -t 60 || lxc-stop -k -n gpu01")
    _, found = doctor(boxes, tmp_path)
    assert found["hypervisor"][0]["status"] == "fail"
    assert "SIGQUIT to PID 1" in found["hypervisor"][0]["found"]
    first = deploy()
    assert "SIGQUIT to PID 1" in first.output
    deploy().ended_well()
    _, found = doctor(boxes, tmp_path)
    assert {check["status"] for check in found["hypervisor"] + found["endpoint"]} == {"pass"}
