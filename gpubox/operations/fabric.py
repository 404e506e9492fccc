"""Have the fabric manager where cards hang on NVSwitches: of the driver's version, started, with
what it needs."""

from collections.abc import Callable, Sequence

from pyinfra import host, logger
from pyinfra.api import QuoteString, StringCommand

from gpubox.driver import fabric
from gpubox.facts.driver import DriverFact, DriverState
from gpubox.operations import Commands, operation
from gpubox.operations.apt import installation, refused, update
from gpubox.operations.files import put
from gpubox.operations.reload import AtRisk, warn
from gpubox.support.owned_file import OwnedFile


@operation()
def fabric_manager(
    names: Sequence[str], uris: Sequence[str], look: Callable[[], DriverState], at_risk: AtRisk = tuple
) -> Commands:
    """
    Install, enable and start the fabric manager on a machine with NVSwitches and a kernel of its
    own; else nothing.

    One that is installed already is moved with the driver's userland. One that runs is left alone.

    + names: of packages that apt is asked about, as for DriverFact
    + uris: sources that must be readable for it
    + look: gives the DriverState of the host
    + at_risk: gives docker containers that a reload of systemd may take the cards from
    """
    state = look()
    if state.in_container or not state.fabric.kind or state.module is None:
        return
    is_there = any(package.installed and fabric.is_package(name) for name, package in state.packages.items())
    if not is_there and not state.fabric.version:
        yield update(uris)
        state = host.get_fact(DriverFact, names=names)
        chosen = fabric.choose(state.offers, state.module or "")
        if chosen is None:
            needed = f"a package of {' or '.join(fabric.PACKAGES)} in exactly that version"
            found = f"NVSwitches, kernel module {state.module}, and no fabric manager of that version on offer"
            yield refused(found, needed, "a driver.source that has it; without it CUDA gives error 802")
            return
        more = [fabric.SUBNET_MANAGER] if state.fabric.kind == "nvlink5" else []
        wishes = [f"{chosen[0]}={chosen[1]}", *more]
        yield installation(f"installing the fabric manager of {state.module}", *wishes)
    if lacking := state.fabric.lacks_modules:
        yield from put(OwnedFile(fabric.MODULES_FILE, fabric.MODULES_TEXT))
        yield StringCommand("modprobe -a", *(QuoteString(name) for name in lacking))
    if not state.fabric.enabled:
        warn(at_risk)
        yield StringCommand(f"systemctl enable --now {fabric.UNIT}")
    elif not state.fabric.active:
        logger.warning(f"{host.print_prefix}{fabric.UNIT} does not run: starting it")
        yield StringCommand(f"systemctl start {fabric.UNIT}")
