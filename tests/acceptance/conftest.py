"""What every acceptance test needs: the box's wishes, and its hypervisor. The tests ask, and change nothing."""

import pytest
import testinfra
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.service import Service, service_of
from gpubox.testing.hosts import spec


@pytest.fixture(scope="module")
def box(host: Host, boxes: Inventory) -> Box:
    """The box that is asked, with everything wished for it."""
    return boxes.box(host.backend.host.name)


@pytest.fixture(scope="module")
def wish(box: Box) -> Service:
    """The service as its files and process must be."""
    return service_of(box)


@pytest.fixture(scope="module")
def hypervisor(box: Box, boxes: Inventory) -> Host:
    """The machine that holds the box."""
    if box.settings.hypervisor is None:
        pytest.skip(f"{box.name} has no hypervisor: a VM or bare metal")
    held_by = boxes.hypervisors[box.settings.hypervisor]
    return testinfra.get_host(spec(held_by.name, held_by.connection))
