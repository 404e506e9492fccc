"""Make a container, and a way in by ssh."""

import shlex
from collections.abc import Generator

from pyinfra import logger
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from gpubox.errors import GpuboxError
from gpubox.facts.hypervisor import HypervisorState, WayIn
from gpubox.facts.once import read
from gpubox.hypervisor import create as making
from gpubox.hypervisor.kinds import Kind, Name
from gpubox.settings import Create

Commands = Generator[StringCommand, None, None]


@operation()
def create(container: str, kind: Name, wish: Create, hostname: str) -> Commands:
    """Make the container if the hypervisor does not have it. An existing one is left as it is.

    It is started by the operation that gives it its cards.

    + container: its name, or its number (Proxmox)
    + kind: lxc, proxmox or incus
    + wish: what it is made from and what it gets
    + hostname: its name inside
    """
    found = read(HypervisorState, kind=kind, container=container)
    if found.config is not None:
        return
    try:
        commands = making.commands(Kind(kind, container), wish, hostname, found.cgroup)
    except GpuboxError as error:
        raise OperationError(f"{container} on {host.name}: {error.message}") from error
    logger.info(f"{host.print_prefix}making container {container} from {wish.template}: may take some minutes")
    for words in commands:
        yield StringCommand(*map(QuoteString, words))


@operation()
def way_in(container: str, kind: Name, wish: Create) -> Commands:
    """Have sshd and the key in the running container, through the hypervisor: no connection to it is needed.

    + container: its name, or its number (Proxmox)
    + kind: lxc, proxmox or incus
    + wish: carries the public key
    """
    if read(WayIn, kind=kind, container=container, public_key=wish.public_key):
        return
    logger.warning(f"{host.print_prefix}container {container} gets sshd and the key; the next run goes on inside it")
    yield StringCommand(shlex.join(Kind(kind, container).inside(making.way_in(wish.public_key))))
