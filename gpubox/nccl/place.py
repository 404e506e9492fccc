"""Whether a machine is bare metal, an LXC container or a virtual machine, and what was taken as evidence.

One sign alone misleads: every virtual machine, and every container on one, shows the CPU flag `hypervisor`;
systemd-detect-virt may be missing; DMI is hidden in many containers, and others show their host's. So a container is
told by its first process, a VM by systemd or the firmware, and bare metal only by the absence of both.
"""

from dataclasses import dataclass
from typing import Literal

Place = Literal["bare", "lxc", "vm"]

_LXC = {"lxc", "lxc-libvirt"}
_MACHINES = (
    *("qemu", "kvm", "vmware", "virtualbox", "innotek", "xen", "bochs", "parallels", "bhyve", "openstack"),
    *("virtual machine", "google compute engine", "nutanix", "ovirt", "rhev"),
)


@dataclass(frozen=True)
class Signs:
    """What a machine shows of itself; empty: nothing found there."""

    init: str = ""
    """`container=` in the environment of process 1, which LXC, Proxmox VE and Incus set to lxc."""
    run_container: str = ""
    """/run/systemd/container, which systemd writes from it."""
    detect_virt: str | None = None
    """What systemd-detect-virt says (`none`: neither); None: there is no such program, or it could not say."""
    dmi: str = ""
    """Vendor and product that the firmware gives."""
    cpu_flag: bool = False
    """The CPU flag `hypervisor`: a machine below, maybe under the container that asks."""


@dataclass(frozen=True)
class Judgement:
    """Where the machine is, and why."""

    place: Place | None
    """None: cannot tell, or a kind of container that gpubox does not know."""
    why: str


def judge(signs: Signs) -> Judgement:
    """The place, by the strongest sign there is: container, then VM, then bare metal."""
    for source, word in {
        "container= of process 1": signs.init,
        "/run/systemd/container": signs.run_container,
        "systemd-detect-virt": signs.detect_virt if signs.detect_virt in _LXC else "",
    }.items():
        if word:
            return Judgement("lxc" if word in _LXC else None, f"{source} is {word}")
    if signs.detect_virt not in {None, "", "none"}:
        return Judgement("vm", f"systemd-detect-virt says {signs.detect_virt}")
    if any(known in signs.dmi.lower() for known in _MACHINES):
        return Judgement("vm", f"the firmware says {signs.dmi}")
    if signs.cpu_flag:
        return Judgement("vm", "no sign of a container, and the CPU flag `hypervisor`")
    if signs.detect_virt == "none":
        return Judgement("bare", "systemd-detect-virt says none, and no CPU flag `hypervisor`")
    if signs.dmi:
        return Judgement("bare", f"no sign of a container or VM, and the firmware says {signs.dmi}")
    return Judgement(None, "no systemd-detect-virt, no firmware's name, no sign of a container")
