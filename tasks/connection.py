"""Step `connection`: go on in the same run after the hypervisor restarted the box."""

from gpubox.deploy import step
from gpubox.inventory import Box
from gpubox.operations.connection import reconnect


@step("Connection")
def connection(box: Box) -> None:
    """Connect again if the box was restarted since the run began."""
    reconnect(name=f"ssh of {box.name} answers")
