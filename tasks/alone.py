"""Step `alone`: one run at a time on a host."""

from gpubox.deploy import step
from gpubox.operations.lock import exclusive


@step("Alone")
def alone() -> None:
    """Hold the host until this run ends; fail if another run holds it."""
    exclusive(name="No other run is at work")
