"""What a container must have, and what the running one lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpubox.hypervisor import incus, lxc_config, nodes, proxmox_config
from gpubox.hypervisor.cards import Card
from gpubox.hypervisor.kinds import Kind
from gpubox.hypervisor.nodes import Node
from gpubox.hypervisor.state import PassthroughState
from gpubox.support.errors import GpuboxError

UNLIMITED = "unlimited"


@dataclass(frozen=True)
class Gift:
    """What one container is given."""

    cards: tuple[Card, ...]
    nodes: tuple[Node, ...]
    """All device nodes, the caps among them."""
    caps: tuple[Node, ...] = ()
    memlock: bool = False
    """Its first process must be allowed to lock memory without limit: an unprivileged one cannot raise its own."""


def gift(box: Kind, found: PassthroughState, cards: Sequence[Card], caps: bool) -> Gift:
    """The nodes of the cards, numbered by the kernel; none without cards.

    Errors: the driver is not loaded; caps wanted and not there.
    """
    minors = [card.minor for card in cards if card.minor is not None]
    wanted = nodes.needed(found.proc_devices, minors) if minors else []
    extra = nodes.caps(found.proc_devices, found.nodes) if caps else []
    return Gift(
        tuple(cards), (*wanted, *extra), tuple(extra), memlock=_unprivileged(box, found) and found.may_raise_limits
    )


def new_text(box: Kind, found: PassthroughState, given: Gift) -> str:
    """The container's configuration file as it must be (plain LXC, Proxmox). Errors: see the two kinds' modules."""
    text = found.config or ""
    if box.name == "proxmox":
        if not found.pve_container:
            raise GpuboxError("the version of pve-container is unknown", "the Debian package pve-container installed")
        return proxmox_config.with_devices(text, given.nodes, found.pve_container)
    extra = [f"lxc.prlimit.memlock = {UNLIMITED}"] if given.memlock else []
    return lxc_config.with_passthrough(text, given.nodes, found.cgroup, extra)


def faults(found: PassthroughState, given: Gift) -> list[str]:
    """What the running container lacks or has too much; empty: it has exactly what it is given."""
    paths = {node.path for node in given.nodes}
    wrong = nodes.wrong(given.nodes, found.inside.nodes)
    denied = [f"{path} is denied" for path in sorted(found.inside.denied & paths)]
    more = [path for path in sorted(set(found.inside.nodes) - paths) if path[len("/dev/nvidia") :].isdigit()]
    extra = [f"{path} is not its any more" for path in more if not lxc_config.mounts(_live(found), path)]
    locked = found.inside.memlock
    memlock = [f"may lock {locked} bytes of memory"] if given.memlock and locked != UNLIMITED else []
    return wrong + denied + extra + memlock


def remarks(box: Kind, found: PassthroughState) -> list[str]:
    """Lines of the user's own that are left as they are, and that a person should know about."""
    known = nodes.majors(found.proc_devices).values()
    stale = lxc_config.stale_lines(_live(found), known) if box.name != "incus" else []
    lines = [f"'{line}' allows a device number that the kernel does not have" for line in stale]
    if box.name == "proxmox" and found.pve_container >= proxmox_config.DEV_ENTRIES_SINCE:
        text = found.config or ""
        lines += [f"'{line}' is needless beside devN entries" for line in proxmox_config.own_lines(text)]
        gone = proxmox_config.stale_entries(text, found.nodes)
        lines += [f"'{line}' names a device that is not there: Proxmox will not start the container" for line in gone]
    lines = [f"{box.config_path}: {line}; it is left as it is" for line in lines]
    if not found.config or not _unprivileged(box, found):
        return lines
    if found.inside.cgroup_toolkit:
        lines.append(
            "NVIDIA's container toolkit inside an unprivileged container needs no-cgroups = true in its config.toml"
        )
    if not found.may_raise_limits:
        lines.append("this hypervisor may not raise limits: the container's memlock stays as it is")
    return lines


def _live(found: PassthroughState) -> str:
    """What counts of the configuration now; a plain one has no sections."""
    return proxmox_config.main_part(found.config or "")


def _unprivileged(box: Kind, found: PassthroughState) -> bool:
    if box.name == "lxc":
        return found.unprivileged
    text = found.config or ""
    return proxmox_config.unprivileged(text) if box.name == "proxmox" else incus.unprivileged(text)
