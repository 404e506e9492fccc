"""The service starts under another driver than the one that its kernels were compiled for."""

from collections.abc import Callable, Iterator

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.lab import lifecycle
from gpubox.server import jit
from gpubox.server.service import UNIT, venv_of
from tests.deploy import Run
from tests.faults.packages import LABS_CARD


@pytest.fixture
def kernel(gpu01: Box, on_box: Host, deploy: Callable[[], Run]) -> Iterator[str]:
    """A kernel compiled under the driver of now; the driver is the lab's own again afterwards."""
    deploy().ended_well()
    restart(on_box)
    path = jit.environment(venv_of(gpu01))["TRITON_CACHE_DIR"] + "/kernel.so"
    on_box.run_expect([0], f"mkdir -p {path.rpartition('/')[0]}; touch {path}")
    yield path
    lifecycle.give_hardware(gpu01.name, LABS_CARD, None)
    deploy().ended_well()


@pytest.mark.pain("P30")
def test_kernels_go_with_the_driver_they_were_compiled_for(kernel: str, gpu01: Box, on_box: Host) -> None:
    restart(on_box)
    assert on_box.file(kernel).exists
    lifecycle.give_hardware(gpu01.name, LABS_CARD, "590.99.01")
    restart(on_box)
    assert not on_box.file(kernel).exists
    assert "590.99.01" in on_box.check_output(f"cat {jit.folder(venv_of(gpu01))}/made-with")
    environment = on_box.check_output(f"tr '\\0' '\\n' </proc/$(systemctl show -P MainPID {UNIT})/environ")
    assert f"TRITON_CACHE_DIR={kernel.rpartition('/')[0]}" in environment.splitlines()


def restart(on_box: Host) -> None:
    """Not until it answers: what is looked at happens before it loads."""
    on_box.run_expect([0], f"systemctl reset-failed {UNIT}; systemctl restart {UNIT}")
