"""LXC configurations as text: the hypervisor's, and a box's in two parts (a person's, and the lab's own)."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubox.lab import network
from gpubox.lab.layers import Stack
from gpubox.lab.releases import RELEASES

# Where pve01 sees the outer machine's folders.
BASE_INSIDE = "/var/lib/gpubox-lab/base"
HARDWARE_INSIDE = "/var/lib/gpubox-lab/hardware"
CACHE_INSIDE = "/var/lib/gpubox-lab/cache"
APT_INSIDE = "/srv/apt"
BOXES_INSIDE = "/var/lib/lxc"
# the folder of a container that holds its own files: an overlay's upper part, or the whole root
ROOT = "rootfs"


@dataclass(frozen=True)
class Mount:
    """A bind mount: absolute source, absolute target inside, file or folder, writable or not."""

    source: str
    target: str
    create: str = "dir"
    writable: bool = False

    def line(self) -> str:
        """The `lxc.mount.entry` of this mount; `optional`, since not every kernel has every file of /proc and /sys."""
        options = f"bind,{'' if self.writable else 'ro,'}create={self.create},optional"
        return f"lxc.mount.entry = {self.source} {self.target.lstrip('/')} none {options} 0 0"


def hypervisor(stack: Stack, root: Path, mounts: Sequence[Mount], mtu: int) -> str:
    """The outer container: everything allowed, so that it can run containers itself."""
    lines = [
        "# pve01 of the gpubox practice machine, made by `gpubox lab up`",
        "lxc.include = /usr/share/lxc/config/common.conf",
        "lxc.include = /usr/share/lxc/config/nesting.conf",
        "lxc.apparmor.profile = unconfined",
        "lxc.cap.drop =",
        "lxc.cgroup.devices.allow = a",
        "lxc.cgroup2.devices.allow = a",
        f"lxc.uts.name = {network.HYPERVISOR}",
        f"lxc.rootfs.path = {_rootfs(stack.overlay, map(str, stack.layers), str(root))}",
        *_link(network.HYPERVISOR, network.BRIDGE, mtu),
        *(mount.line() for mount in mounts),
    ]
    return "\n".join([*lines, ""])


def box(name: str, stack: Stack, mtu: int) -> str:
    """A box's configuration as a person has it before any passthrough; `lab.conf` carries what only the lab needs."""
    layers = (f"{BASE_INSIDE}/{layer.name}" for layer in stack.layers)
    lines = [
        "lxc.include = /usr/share/lxc/config/common.conf",
        f"lxc.uts.name = {name}",
        f"lxc.rootfs.path = {_rootfs(stack.overlay, layers, f'{BOXES_INSIDE}/{name}/{ROOT}')}",
        "lxc.start.auto = 1",
        *_link(name, "vmbr0", mtu),
        f"lxc.net.0.ipv4.address = {network.addresses()[name]}/{network.RANGE.prefixlen}",
        f"lxc.net.0.ipv4.gateway = {network.OUTER}",
        f"lxc.include = {BOXES_INSIDE}/{name}/lab.conf",
    ]
    return "\n".join([*lines, ""])


def box_lab(mounts: Sequence[Mount], init: str = "") -> str:
    """The lab's part of a box's configuration: stand-in hardware, caches, package folders, its init if not the usual.

    + init: from `init_line`
    """
    head = "# the practice machine's own part: stand-ins and caches; a real container has none of this"
    lines = [head, "lxc.apparmor.profile = unconfined", *([init] if init else [])]
    return "\n".join([*lines, *(mount.line() for mount in mounts), ""])


def init_line(release: str, cgroups: str) -> str:
    """The init that a release needs on this machine's cgroups (`v1` or `v2`); empty: the usual one.

    From version 256 on systemd does not boot on cgroup v1 unless its command line asks for it (NEWS of that version);
    in a container that is the command line of init itself.
    """
    if cgroups != "v1" or RELEASES[release].version < 13:
        return ""
    return "lxc.init.cmd = /sbin/init SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"


def stand_in_mounts(source: str) -> list[Mount]:
    """The driver that is not there, at the kernel's real paths, the same in every container."""
    return [
        Mount(f"{source}/proc-devices", "/proc/devices", "file"),
        Mount(f"{source}/proc-driver", "/proc/driver"),
        Mount(f"{source}/sys-module", "/sys/module"),
    ]


def hypervisor_mounts(
    base: Path, boxes: Path, hardware: Path, apt: Path, cache: Path, folders: Sequence[Path]
) -> list[Mount]:
    """What pve01 sees of the outer machine."""
    return [
        Mount(str(base), BASE_INSIDE),
        Mount(str(boxes), BOXES_INSIDE, writable=True),
        Mount(str(hardware), HARDWARE_INSIDE, writable=True),
        Mount(str(apt), APT_INSIDE),
        Mount(str(cache), CACHE_INSIDE, writable=True),
        Mount(f"{cache}/apt/{network.HYPERVISOR}", "/var/cache/apt/archives", writable=True),
        *(Mount(str(folder), str(folder)) for folder in folders),
        *stand_in_mounts(str(hardware)),
    ]


def box_mounts(name: str, folders: Sequence[Path], own_hardware: bool = False) -> list[Mount]:
    """What a box sees of pve01 beyond its own disk; `own_hardware`: that of `gpubox lab hardware`, not the lab's."""
    hardware = f"{HARDWARE_INSIDE}/of/{name}" if own_hardware else HARDWARE_INSIDE
    return [
        Mount(hardware, HARDWARE_INSIDE),
        Mount(f"{CACHE_INSIDE}/apt/{name}", "/var/cache/apt/archives", writable=True),
        Mount(f"{CACHE_INSIDE}/uv", "/root/.cache/uv", writable=True),
        *(Mount(str(folder), str(folder)) for folder in folders),
        *stand_in_mounts(hardware),
    ]


def _rootfs(overlay: bool, layers: Iterable[str], root: str) -> str:
    return f"overlay:{':'.join(layers)}:{root}" if overlay else f"dir:{root}"


def _link(name: str, bridge: str, mtu: int) -> list[str]:
    digest = hashlib.sha256(name.encode()).hexdigest()
    mac = ":".join(["10:66:6a", *(digest[i : i + 2] for i in (0, 2, 4))])
    return [
        "lxc.net.0.type = veth",
        f"lxc.net.0.link = {bridge}",
        "lxc.net.0.flags = up",
        "lxc.net.0.name = eth0",
        f"lxc.net.0.hwaddr = {mac}",
        f"lxc.net.0.mtu = {mtu}",
    ]
