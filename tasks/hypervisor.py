"""Give each container of this hypervisor its cards."""

from gpubox.deploy import step
from gpubox.hypervisor.cards import Wanted
from gpubox.inventory import Box, Hypervisor
from gpubox.operations.passthrough import passthrough


@step("Hypervisor")
def hypervisor(this: Hypervisor) -> None:
    """Passthrough of the cards into each of the boxes that `this` holds, from the driver that runs on it now."""
    for box in this.boxes:
        container = box.settings.container
        if container is None:
            continue
        passthrough(
            name=f"cards of {container.name}",
            container=container.name,
            kind=container.kind,
            gpus=box.settings.gpus,
            others=_others(box, this),
            caps=box.settings.gpu_caps,
            allow_restart=container.allow_restart,
        )


def _others(box: Box, this: Hypervisor) -> dict[str, Wanted]:
    """The containers that may not have the same cards: all, but those where both say that they share."""
    return {
        other.settings.container.name: other.settings.gpus
        for other in this.boxes
        if other.settings.container and other is not box
        if not (box.settings.gpus_shared and other.settings.gpus_shared)
    }
