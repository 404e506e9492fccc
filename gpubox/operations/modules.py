"""The driver on the hypervisor: its device nodes now and after each boot, its persistence daemon."""

from collections.abc import Callable

from pyinfra import logger
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.context import host

from gpubox.driver import packages as driver
from gpubox.hypervisor import holders, modules, nodes
from gpubox.hypervisor.pending import advice, pending
from gpubox.hypervisor.state import NODES_UNIT, PERSISTENCE_UNIT, HypervisorHost
from gpubox.operations import Commands, operation
from gpubox.operations.files import put
from gpubox.operations.reload import AtRisk, warn
from gpubox.settings.host import HypervisorSettings
from gpubox.support.errors import GpuboxError
from gpubox.support.owned_file import OwnedFile

NODES_SCRIPT = "/usr/local/sbin/gpubox-nvidia-nodes"


@operation()
def device_nodes(look: Callable[[], HypervisorHost], at_risk: AtRisk = tuple) -> Commands:
    """Make the driver's device nodes that are missing, or whose numbers are not the kernel's; at each boot too.

    Files of script and unit are put before by the same step; the script loads nvidia-uvm where only that is missing.

    + look: gives the hypervisor's state
    + at_risk: gives docker containers that a reload of systemd may take the cards from
    """
    found = look()
    minors = [card.minor for card in found.cards if card.minor is not None]
    try:
        if nodes.lacks_unified_memory(found.proc_devices):
            wrong = ["nvidia-uvm is not loaded"]
        else:
            wrong = nodes.wrong(nodes.needed(found.proc_devices, minors), found.nodes)
    except GpuboxError as error:
        raise OperationError(f"{host.name}: {error.message}") from error
    unit = found.units.get(NODES_UNIT)
    if unit is None or unit.file_state != "enabled" or unit.stale:
        warn(at_risk)
    if unit is None or unit.file_state != "enabled":
        yield StringCommand("systemctl", "enable", NODES_UNIT)
    elif unit.stale:
        yield StringCommand("systemctl", "daemon-reload")
    if wrong:
        logger.warning(f"{host.print_prefix}device nodes of the driver: {'; '.join(wrong)}")
        yield StringCommand(QuoteString(NODES_SCRIPT))


@operation()
def persistence(look: Callable[[], HypervisorHost], at_risk: AtRisk = tuple) -> Commands:
    """Run NVIDIA's persistence daemon where its package is installed: on the host only, never in a container.

    Without it a card that nobody uses loses its state, and the next user waits for its start
    (shader-slang/slang#10659).

    + look: gives the hypervisor's state
    + at_risk: as for `device_nodes`
    """
    unit = look().units.get(PERSISTENCE_UNIT)
    if unit is None or unit.file_state in {"", "masked"}:
        return
    # NVIDIA's package ships it `static`, started by udev; then only a start is possible
    startable = unit.file_state in {"enabled", "static"}
    if not startable:
        warn(at_risk)
        yield StringCommand("systemctl", "enable", "--now", PERSISTENCE_UNIT)
    elif unit.active != "active":
        yield StringCommand("systemctl", "start", PERSISTENCE_UNIT)


@operation()
def nova_blacklisted(look: Callable[[], HypervisorHost]) -> Commands:
    """Keep nova_core, nova_drm and nouveau from the cards, where an installed kernel has nova_core; else nothing.

    A blacklisted nouveau alone does not help there (beclab/Olares#3963).

    + look: gives the hypervisor's state, with the file of the blacklist among its files
    """
    found = look()
    done = OwnedFile(holders.BLACKLIST_FILE, holders.blacklist_text(done=True))
    if not found.nova or done.is_at(found.files[holders.BLACKLIST_FILE]):
        return
    yield from put(OwnedFile(holders.BLACKLIST_FILE, holders.blacklist_text(done=False)))
    yield StringCommand(*map(QuoteString, holders.REFRESH))
    yield from put(done)


@operation()
def before_restarts(look: Callable[[], HypervisorHost]) -> Commands:
    """Say, before any container is restarted, that another driver lies on disk than runs; changes nothing.

    + look: gives the hypervisor's state
    """
    found = look()
    if told := modules.other_on_disk(driver.module_version(found.driver_text), found.on_disk):
        todo = "reboot at a time that suits, then run the deploy; and hold the driver's packages here (apt-mark hold)"
        logger.warning(f"{host.print_prefix}{told}; {todo}")
    yield from ()


@operation()
def report(wish: HypervisorSettings, look: Callable[[], HypervisorHost]) -> Commands:
    """Say what is pending on the hypervisor, and what may disturb its cards; changes nothing.

    + wish: the hypervisor's settings
    + look: gives its state
    """
    found = look()
    for line in pending(found, wish):
        logger.warning(f"{host.print_prefix}{line}")
    for line in advice(found):
        logger.info(f"{host.print_prefix}{line}")
    yield from ()
