"""What was read of a hypervisor and its containers: what is absent is None or empty, never a guess."""

from dataclasses import dataclass, field
from typing import Literal

from gpubox.driver.fabric import Fabric
from gpubox.driver.kernel_log import KernelLog
from gpubox.hypervisor.bars import Bars
from gpubox.hypervisor.boot import BootFiles
from gpubox.hypervisor.bus import Slot
from gpubox.hypervisor.cards import Card
from gpubox.hypervisor.dkms import Kernel, NextBoot
from gpubox.hypervisor.lxc_config import Cgroup
from gpubox.hypervisor.nodes import Node
from gpubox.hypervisor.secure_boot import SecureBoot
from gpubox.support.owned_file import Entry

NODES_UNIT = "gpubox-nvidia-nodes.service"
PERSISTENCE_UNIT = "nvidia-persistenced.service"

RunState = Literal["running", "stopped", "absent"]


@dataclass(frozen=True)
class Inside:
    """The running container, seen from inside as its root."""

    nodes: dict[str, Node] = field(default_factory=dict)
    """NVIDIA device nodes by path."""
    denied: frozenset[str] = frozenset()
    """Paths of nodes that may not be opened: the device cgroup or the node's mode forbids it."""
    memlock: str = ""
    """Bytes that its first process may lock, or `unlimited`."""
    ports: tuple[int, ...] = ()
    """TCP ports on which something listens, but ssh's."""
    cgroup_toolkit: bool = False
    """NVIDIA's container toolkit is set up there and would edit device cgroups (NVIDIA/libnvidia-container#154)."""


@dataclass(frozen=True)
class PassthroughState:
    """The hypervisor and one container of it, read in one command. What is absent is None or empty, never a guess."""

    proc_devices: str
    """Text of /proc/devices."""
    nodes: dict[str, Node]
    """Character devices /dev/nvidia* and below /dev/nvidia-caps, by path."""
    cards: list[Card]
    """NVIDIA cards by PCI address, whichever driver holds them."""
    driver: str | None
    """Version of the loaded kernel module, as 580.95.05; None: not loaded."""
    cgroup: Cgroup
    """The version whose device rules the kernel enforces here."""
    config: str | None
    """Text of the container's configuration (Incus: JSON); None: there is no such container."""
    state: RunState
    inside: Inside
    unprivileged: bool
    """Plain LXC: the container's root is mapped to another user. Other kinds say it in their configuration."""
    unit: bool
    """Plain LXC: the container runs as systemd unit lxc@NAME.service."""
    may_raise_limits: bool
    """Root here may raise a process' limits; not so on a hypervisor that is itself a container without that right."""
    pve_container: tuple[int, ...]
    """Version of Proxmox' package pve-container; empty: not Proxmox."""
    last_words: str = ""
    """Of a container that is down: the last lines of its first process and of the hypervisor about it."""


@dataclass(frozen=True)
class Unit:
    """A systemd unit: its file's state (`enabled`, `disabled`, ...; empty: there is none), and what it does now."""

    file_state: str
    active: str
    stale: bool
    """Its file changed since systemd read it."""


@dataclass(frozen=True)
class HypervisorHost:
    """The hypervisor. What is absent is None or empty, never a guess."""

    proc_devices: str
    nodes: dict[str, Node]
    cards: list[Card]
    slots: list[Slot]
    driver_text: str
    """Text of /proc/driver/nvidia/version; empty: no driver."""
    params: str
    """Text of /proc/driver/nvidia/params; empty: no driver."""
    licence: str | None
    """Of the nvidia module for the running kernel; None: modinfo knows none."""
    hmm: str | None
    """Live value of nvidia_uvm's uvm_disable_hmm; None: the module is not loaded or has no such parameter."""
    options: str
    """Lines `FILE:options ...` about nvidia modules in modprobe.d."""
    users: int
    """Processes that hold an NVIDIA device open, those inside containers too."""
    units: dict[str, Unit]
    kernels: list[Kernel]
    next_boot: NextBoot
    boot_files: BootFiles
    command_line: str
    """Of the running kernel."""
    lspci: str | None
    """Text of `lspci -vvv`; None: there is no lspci, or it fails."""
    aspm: str
    proxmox: bool
    bars: list[Bars]
    secure_boot: SecureBoot
    kernel_log: KernelLog
    make_log: str
    """End of DKMS's newest log of building nvidia modules; empty: there is none, or it ended well."""
    nova: bool
    """An installed kernel has nova_core, which takes cards before NVIDIA's driver does."""
    files: dict[str, Entry]
    fabric: Fabric = field(default_factory=Fabric)
    """NVSwitches, and what sets them up."""
    on_disk: str | None = None
    """Version of the module that the running kernel would load now; None: modinfo knows none."""
    unheld: str = ""
    """Lines `PACKAGE VERSION` of the driver's packages that unattended-upgrades may move."""
