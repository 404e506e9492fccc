"""Give each container of this hypervisor its cards."""

from gpubox.deploy import step
from gpubox.inventory import Hypervisor
from gpubox.operations.passthrough import passthrough


@step("Hypervisor")
def hypervisor(this: Hypervisor) -> None:
    """Passthrough of the cards into each of the boxes that `this` holds, from the driver that runs on it now."""
    for box in this.boxes:
        container = box.settings.container
        if container is None:
            continue
        passthrough(name=f"cards of {container.name}", container=container.name, allow_restart=container.allow_restart)
