"""Power limits on the practice machine: set, put right, and there again after what makes a
driver forget them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

from gpubox.hypervisor import limits
from gpubox.inventory import Inventory
from gpubox.lab import lxc
from tests.deploy import Run, converge

pytestmark = pytest.mark.pain("P94")

CHANGED = ["pve01: Hypervisor | Power limits and clocks"]
WATTS = "nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits"
SET, DEFAULT = ["450.00", "400.00", *["450.00"] * 6], ["600.00"] * 8
LIMITS = '{"all": {"power_w": 450}, "21:00.0": {"power_w": 400}}'


@pytest.fixture(scope="module")
def files(boxes: Inventory, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The practice machine's inventory, as it is and with limits."""
    text = boxes.path.read_text()
    limited = tmp_path_factory.mktemp("limits") / boxes.path.name
    limited.write_text(text.replace('"kind": "lxc", **_lab', f'"kind": "lxc", "card_limits": {LIMITS}, **_lab'))
    return {"without": boxes.path, "with": limited}


@pytest.fixture(scope="module")
def step(files: dict[str, Path], on_hypervisor: Host) -> Iterator[Callable[[str], Run]]:
    """Run the hypervisor's part of the deploy `with` the limits or `without`; afterwards nothing
    of them is left."""
    yield lambda which: converge(files[which], "--limit", "pve01").ended_well()
    converge(files["without"], "--limit", "pve01")
    assert on_hypervisor.check_output(WATTS).split() == DEFAULT


def comes_back(hypervisor: Host) -> bool:
    """Whether the cards have their limits again within 30 seconds."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if hypervisor.run(WATTS).stdout.split() == SET:
            return True
        time.sleep(0.5)
    return False


def test_set_and_put_right(step: Callable[[str], Run], on_hypervisor: Host) -> None:
    assert step("without").changed == []
    assert step("with").changed == CHANGED
    assert on_hypervisor.check_output(WATTS).split() == SET
    assert step("with").changed == []
    on_hypervisor.check_output("nvidia-smi -i 00000000:41:00.0 -pl 600")
    run = step("with")
    assert run.changed == CHANGED
    assert "power limit 600 W, the data says 450 W" in run.output
    assert on_hypervisor.check_output(WATTS).split() == SET


def test_a_load_of_the_driver_forgets_them_and_the_unit_brings_them_back(
    step: Callable[[str], Run], on_hypervisor: Host
) -> None:
    step("with")
    on_hypervisor.check_output(f"systemctl stop {limits.UNIT}; /usr/local/sbin/lab-driver")
    assert comes_back(on_hypervisor)


def test_a_boot_forgets_them_and_the_unit_brings_them_back(step: Callable[[str], Run], on_hypervisor: Host) -> None:
    step("with")
    lxc.stop("pve01", graceful_s=30)
    lxc.start("pve01")
    lxc.wait_for_ssh(["pve01", "gpu01"])
    assert comes_back(on_hypervisor)
    assert step("with").changed == []


def test_without_the_setting_nothing_is_left(step: Callable[[str], Run], on_hypervisor: Host) -> None:
    step("with")
    assert step("without").changed == CHANGED
    assert on_hypervisor.check_output(WATTS).split() == DEFAULT
    assert on_hypervisor.run(f"ls {' '.join(limits.FILES)}").stdout == ""
    assert step("without").changed == []


def test_a_limit_that_no_card_takes_stops_before_anything_is_written(
    files: dict[str, Path], step: Callable[[str], Run], tmp_path: Path, on_hypervisor: Host
) -> None:
    step("without")
    wrong = tmp_path / files["with"].name
    wrong.write_text(files["with"].read_text().replace('"power_w": 400', '"power_w": 200'))
    run = converge(wrong, "--limit", "pve01")
    assert run.code != 0
    assert "power_w is 200, it allows 300.0 to 600.0" in run.output
    assert on_hypervisor.run(f"ls {' '.join(limits.FILES)}").stdout == ""
