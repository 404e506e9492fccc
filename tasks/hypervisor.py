"""Step `hypervisor`: the driver's side of the host, then the cards into each container."""

from functools import partial

from pyinfra.api.exceptions import OperationError
from pyinfra.context import host

from gpubox.deploy import step
from gpubox.facts.card_limits import LimitsFact
from gpubox.facts.docker import DockerAtRisk
from gpubox.facts.hypervisor import HypervisorState, WayIn
from gpubox.facts.hypervisor_host import HostState
from gpubox.facts.once import read
from gpubox.hosts import Box, Hypervisor
from gpubox.hypervisor import limits
from gpubox.hypervisor.cards import Wanted
from gpubox.hypervisor.holders import BLACKLIST_FILE
from gpubox.hypervisor.kinds import Kind
from gpubox.hypervisor.modules import OPTIONS_FILE, options_text
from gpubox.hypervisor.state import NODES_UNIT
from gpubox.operations.boot import kernel_command_line
from gpubox.operations.card_limits import card_limits
from gpubox.operations.create import create, way_in
from gpubox.operations.files import owned_files
from gpubox.operations.modules import NODES_SCRIPT, before_restarts, device_nodes, nova_blacklisted, persistence, report
from gpubox.operations.passthrough import passthrough
from gpubox.settings.host import Container
from gpubox.support.owned_file import OwnedFile
from gpubox.support.templates import render


@step("Hypervisor")
def hypervisor(this: Hypervisor) -> None:
    """Bring the driver's nodes and options to this hypervisor's data, and the cards into the boxes that it holds."""
    wish = this.settings
    files = [
        OwnedFile(OPTIONS_FILE, options_text(wish.uvm_disable_hmm)),
        OwnedFile(NODES_SCRIPT, render("hypervisor-nodes.sh.j2"), mode="755"),
        OwnedFile(f"/etc/systemd/system/{NODES_UNIT}", render("hypervisor-nodes.service.j2", script=NODES_SCRIPT)),
    ]
    at_risk = partial(read, DockerAtRisk)
    look = partial(read, HostState, paths=[*(file.path for file in files), *limits.FILES, BLACKLIST_FILE])

    owned_files(name="Module options, device nodes at boot", files=files, look=lambda: look().files)
    if any(box.settings.gpus for box in this.boxes):
        device_nodes(name="Device nodes", look=look, at_risk=at_risk)
    nova_blacklisted(name="nova_core kept from the cards", look=look)
    persistence(name="Persistence daemon", look=look, at_risk=at_risk)
    card_limits(
        name="Power limits and clocks",
        limits=wish.card_limits,
        there=lambda: look().files,
        look=partial(host.get_fact, LimitsFact),
        has_driver=lambda: True,
        at_risk=at_risk,
    )
    kernel_command_line(name="Kernel command line", words=wish.kernel_command_line, look=look)
    before_restarts(name="The driver that a reboot brings", look=look)
    for box in this.boxes:
        if container := box.settings.container:
            _into(container, box, this)
    report(name="What is pending", wish=wish, look=look)


def _into(container: Container, box: Box, this: Hypervisor) -> None:
    """The container itself where the data says how to make it, its cards, and then a way into it."""
    if container.kind != this.settings.kind:
        raise OperationError(f"{box.name}: its container is {container.kind}, {this.name} is {this.settings.kind}")
    inside, made = Kind(container.kind, container.name), container.create
    look = partial(host.get_fact, HypervisorState, kind=inside.name, container=inside.container)
    if made:
        create(name=f"Container {container.name}", box=inside, wish=made, hostname=box.name, look=look)
    passthrough(
        name=f"Cards of {container.name}",
        box=inside,
        look=look,
        gpus=box.settings.gpus,
        others=_others(box, this),
        caps=box.settings.gpu_caps,
        allow_restart=container.allow_restart,
        to_be_made=made is not None,
    )
    if made:
        open_to = partial(
            host.get_fact, WayIn, kind=inside.name, container=inside.container, public_key=made.public_key
        )
        way_in(name=f"ssh into {container.name}", box=inside, wish=made, look=open_to)


def _others(box: Box, this: Hypervisor) -> dict[str, Wanted]:
    """The containers that may not have the same cards: all, but those where both say that they share."""
    return {
        other.settings.container.name: other.settings.gpus
        for other in this.boxes
        if other.settings.container and other is not box
        if not (box.settings.gpus_shared and other.settings.gpus_shared)
    }
