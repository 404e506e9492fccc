"""Give a container the cards: its configuration's lines, and a restart where only that makes them true."""

import base64
from collections.abc import Generator, Iterable

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.api.state import State
from pyinfra.context import host

from gpubox.errors import GpuboxError
from gpubox.facts.hypervisor import Hypervisor, HypervisorState
from gpubox.hypervisor import lxc_config, nodes
from gpubox.hypervisor.nodes import Node

Commands = Generator[StringCommand | FunctionCommand, None, None]

STOP_SECONDS = 90
"""How long a container's own shutdown may take before it is killed; a server frees its cards within seconds."""


@operation()
def passthrough(container: str, allow_restart: bool = True) -> Commands:
    """Make a plain LXC container's device rules and mounts those of the driver that runs now.

    The configuration is written only when it differs, in one rename; the container is restarted only when it runs
    without what the configuration now says. A container that is down is started.

    + container: its name
    + allow_restart: may it be restarted; False: what is pending is reported
    """
    found = host.get_fact(HypervisorState, container=container)
    try:
        wanted = nodes.needed(found.proc_devices, found.card_minors)
        text = _configuration(container, found, wanted)
    except GpuboxError as error:
        raise OperationError(error.message) from error
    if text != found.config:
        yield _replace(found.config_path, text)
    if found.state == "stopped":
        _say(f"container {container} was down when this run began: starting it; the next run completes the box")
        yield _start(container)
    elif pending := faults(wanted, found, text):
        if not allow_restart:
            _say(f"pending: container {container} must be restarted ({'; '.join(pending)}); allow_restart is false")
            return
        _say(f"restarting container {container}: {'; '.join(pending)}")
        yield _restart(container, found.unit)
    else:
        return
    yield FunctionCommand(_check, (container, wanted), {})


def faults(wanted: Iterable[Node], found: Hypervisor, text: str) -> list[str]:
    """What the running container lacks, or has too much, compared with its configuration `text`."""
    live = {path: seen.node for path, seen in found.live.items()}
    paths = {node.path for node in wanted}
    wrong = nodes.wrong(wanted, live)
    denied = [f"{path} is denied" for path, seen in sorted(found.live.items()) if path in paths and seen.denied]
    extra = [f"{path} is not its any more" for path in sorted(set(live) - paths) if f" {path} " not in text]
    return wrong + denied + extra


def _configuration(container: str, found: Hypervisor, wanted: list[Node]) -> str:
    if found.config is None:
        raise GpuboxError(f"no container {container} here: {found.config_path} does not exist", "an LXC container")
    for line in lxc_config.stale_lines(found.config, nodes.majors(found.proc_devices).values()):
        _say(f"{found.config_path}: '{line}' allows a device number that the kernel does not have; it is left as it is")
    return lxc_config.with_passthrough(found.config, wanted, found.cgroup)


def _replace(path: str, text: str) -> StringCommand:
    """Write beside, keep mode and owner, flush, rename: at any moment the file is the old one or the new one, whole."""
    new = QuoteString(f"{path}.gpubox-new")
    old = QuoteString(path)
    return StringCommand(
        *("base64 -d >", new, "&& chmod --reference", old, new, "&& chown --reference", old, new),
        *("&& sync", new, "&& mv -fT", new, old, "&& sync", QuoteString(path.rpartition("/")[0])),
        _stdin=base64.b64encode(text.encode(errors="surrogateescape")).decode(),
    )


def _start(container: str) -> StringCommand:
    name = QuoteString(container)
    return StringCommand("lxc-start -n", name, "&& lxc-wait -n", name, "-s RUNNING -t 60")


def _restart(container: str, unit: bool) -> StringCommand:
    name = QuoteString(container)
    if unit:
        return StringCommand("systemctl restart", QuoteString(f"lxc@{container}.service"))
    return StringCommand("lxc-stop -n", name, f"-t {STOP_SECONDS} &&", _start(container))


def _check(state: State, host: Host, container: str, wanted: list[Node]) -> bool:
    """After the restart the container must have the nodes: if not, this host fails, with what is wrong."""
    found = host.get_fact(HypervisorState, container=container)
    left = faults(wanted, found, found.config or "") if found.state == "running" else [f"it is {found.state}"]
    if left:
        logger.error(f"{host.print_prefix}container {container} after its restart: {'; '.join(left)}")
    return not left


def _say(message: str) -> None:
    logger.warning(f"{host.print_prefix}{message}")
