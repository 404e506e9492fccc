"""Make a container, and a way in by ssh."""

from collections.abc import Callable

from pyinfra import logger
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.context import host

from gpubox.hypervisor import create as making
from gpubox.hypervisor.kinds import Kind
from gpubox.hypervisor.state import PassthroughState
from gpubox.operations import Commands, operation
from gpubox.settings.host import Create
from gpubox.support.errors import GpuboxError


@operation()
def create(box: Kind, wish: Create, hostname: str, look: Callable[[], PassthroughState]) -> Commands:
    """Make the container if the hypervisor does not have it. An existing one is left as it is.

    It is started by the operation that gives it its cards.

    + box: the container
    + wish: what it is made from and what it gets
    + hostname: its name inside
    + look: asks for the state of hypervisor and container
    """
    found = look()
    if found.config is not None:
        return
    try:
        commands = making.commands(box, wish, hostname, found.cgroup)
    except GpuboxError as error:
        raise OperationError(f"{box.container} on {host.name}: {error.message}") from error
    logger.info(f"{host.print_prefix}making container {box.container} from {wish.template}: may take some minutes")
    yield StringCommand(*map(QuoteString, box.locked(commands)))


@operation()
def way_in(box: Kind, wish: Create, look: Callable[[], bool]) -> Commands:
    """Have sshd and the key in the running container, through the hypervisor: no connection to it is needed.

    + box: the container
    + wish: carries the public key
    + look: whether both are there
    """
    if look():
        return
    logger.warning(
        f"{host.print_prefix}container {box.container} gets sshd and the key; the next run goes on inside it"
    )
    yield StringCommand(*map(QuoteString, box.locked([box.inside(making.way_in(wish.public_key))])))
