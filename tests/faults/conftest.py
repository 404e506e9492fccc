"""Tests that run the deploy and damage a box on purpose: only ever the practice machine, and only with --practice."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import testinfra
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.lab import lifecycle
from tests.deploy import Run, converge
from tests.faults import packages
from tests.faults.packages import PackageBox
from tests.ssh import spec

LAB = "10.87.0."


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--practice"):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="damages the practice machine on purpose: --practice"))


@pytest.fixture(scope="session")
def gpu01(boxes: Inventory) -> Box:
    """The box of the practice machine. Any other box is refused."""
    box = boxes.box("gpu01")
    if not box.address.startswith(LAB):
        pytest.fail(f"{box.name} at {box.address} is not the practice machine ({LAB}*): nothing is damaged there")
    return box


@pytest.fixture(scope="session")
def on_box(gpu01: Box) -> Host:
    """The box, to run commands on."""
    return testinfra.get_host(spec(gpu01.name, gpu01.connection))


@pytest.fixture(scope="session")
def on_hypervisor(boxes: Inventory) -> Host:
    """Its hypervisor, to run commands on."""
    return testinfra.get_host(spec("pve01", boxes.hypervisors["pve01"].connection))


@pytest.fixture(scope="session")
def deploy(boxes: Inventory) -> Callable[[], Run]:
    """Run the deploy once, as people do."""
    return lambda: converge(boxes.path)


@pytest.fixture(scope="module")
def package_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageBox]:
    """gpu03 of the practice machine, bare, with the lab's own card again afterwards."""
    if packages.NAME not in {row["host"] for row in lifecycle.status()}:
        pytest.skip(f"no {packages.NAME}: gpubox lab up --boxes 3")
    box = PackageBox(tmp_path_factory.mktemp("packages"))
    box.wish()
    box.bare()
    yield box
    box.sees(packages.LABS_CARD)
    box.bare()
