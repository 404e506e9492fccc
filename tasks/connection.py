"""Step `connection`: go on in the same run after the hypervisor restarted the box."""

from gpubox.deploy import step
from gpubox.operations.connection import reconnect
from gpubox.operations.lock import exclusive


@step("Connection")
def connection() -> None:
    """Wait for the hypervisors, then connect again to a box that was restarted since the run began.

    Called for every host: pyinfra starts a host's first operation as soon as no earlier one of the *same* host is left
    (a topological order over hosts), so without an operation that all share, a box would begin beside its hypervisor.
    """
    reconnect(name="ssh answers")
    exclusive(name="Still no other run")  # a restart of the box ended what held it
