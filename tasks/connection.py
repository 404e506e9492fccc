"""Step `connection`: go on in the same run after the hypervisor restarted the box."""

from pyinfra.api import deploy

from gpubox.inventory import Box
from gpubox.operations.connection import reconnect


@deploy("Connection")
def connection(_: Box) -> None:
    """Connect again if the box was restarted since the run began."""
    reconnect(name="ssh answers")
