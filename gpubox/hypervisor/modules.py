"""The kernel modules' options and licence: what the file says, and what the running module really has."""

import re
from collections.abc import Sequence

from gpubox.hypervisor.cards import Card

OPTIONS_FILE = "/etc/modprobe.d/gpubox-nvidia.conf"
OPEN_LICENCE = "Dual MIT/GPL"
ON_DISK = "/sbin/modinfo -F version nvidia"
"""Shell text: the version of the module that the running kernel would load now (DKMS's too); none in a container."""
REBOOT = "cat /run/reboot-required.pkgs; [ -e /run/reboot-required ]"
"""Shell text: exit code 0 where the distribution asks for a reboot, and the packages that ask."""
_KERNEL_OR_DRIVER = re.compile(r"nvidia|linux-(image|modules|base)|pve-kernel|proxmox-kernel")
_BLACKWELL = re.compile(r"Blackwell|RTX 50[5-9]0|\bG?B[123]00\b", re.I)


def options_text(uvm_disable_hmm: bool) -> str:
    """Our whole file for modprobe. A line in a shared file would read as present even when commented out."""
    value = int(uvm_disable_hmm)
    why = "# CUDA's start fails on Blackwell with some kernels: NVIDIA/open-gpu-kernel-modules#797 and #901"
    return f"# written by gpubox\n{why}\noptions nvidia_uvm uvm_disable_hmm={value}\n"


def conflicts(options: str, uvm_disable_hmm: bool) -> list[str]:
    """Other files' lines that set the same option otherwise; `options`: lines `FILE:options ...` of modprobe.d."""
    lines = []
    for line in options.splitlines():
        file, _, text = line.partition(":")
        found = re.match(r"\s*options\s+nvidia[_-]uvm\s.*\buvm_disable_hmm=(\S+)", text)
        if found and file != OPTIONS_FILE and _true(found.group(1)) != uvm_disable_hmm:
            lines.append(f"{file} sets uvm_disable_hmm={found.group(1)} as well: remove that line, the later file wins")
    return lines


def pending_reload(live: str | None, uvm_disable_hmm: bool, users: int) -> str | None:
    """What is pending when the running module has another value than the file; None: it has the right one.

    `live`: the text of the module's parameter, None: the module is not loaded. `users`: processes that hold a card.
    """
    if live is None or _true(live.strip()) == uvm_disable_hmm:
        return None
    how = "modprobe -r nvidia_uvm && modprobe nvidia_uvm, or a reboot; then run again: its device number may change"
    held = f"{users} processes hold the cards: stop what serves first; then " if users else ""
    differ = f"nvidia_uvm runs with uvm_disable_hmm={live.strip()}, the file says {int(uvm_disable_hmm)}"
    return f"pending reload: {differ}; {held}{how}"


def tight_nodes(params: str, options: str) -> str | None:
    """What keeps nodes from users again and again: the driver's own mode for them, which root's programs restore.

    `params`: text of /proc/driver/nvidia/params; `options`: as for `conflicts`. Debian's package sets 0660
    (canonical/lxd#5625: users see no card).
    """
    values = dict(re.findall(r"^(ModifyDeviceFiles|DeviceFileMode): (\d+)$", params, re.M))
    mode = int(values.get("DeviceFileMode", 0o666))
    if mode & 0o666 == 0o666 or values.get("ModifyDeviceFiles") == "0":
        return None
    setting = next((line for line in options.splitlines() if "NVreg_DeviceFileMode=" in line), "its options")
    return (
        f"the driver gives its nodes mode {mode:o} whenever a program of root starts it, which keeps users out: "
        f"NVreg_DeviceFileMode=0666 in {setting.partition(':')[0]}, then load the module anew or reboot"
    )


def closed_modules(version_text: str, licence: str | None, cards: Sequence[Card]) -> str | None:
    """What is wrong when a Blackwell card is driven by the proprietary modules (its cards do not start); else None."""
    needing = [card for card in cards if _BLACKWELL.search(card.model)]
    if not needing or "Open Kernel Module" in version_text or licence in {None, OPEN_LICENCE}:
        return None
    return (
        f"the nvidia module's licence is {licence}: {needing[0].model} and later cards are driven only by the open "
        f"modules ({OPEN_LICENCE}); install the -open driver package of the same version"
    )


def _true(value: str) -> bool:
    return value in {"1", "Y", "y"}


def other_on_disk(loaded: str | None, on_disk: str | None) -> str | None:
    """What the next boot or load of the driver changes: another version lies on disk than runs. None: the same.

    An upgrade of the driver is not felt until then: what runs has its libraries in memory, and the loaded module stays
    (badbread/crumbvms#395: it ran for days after unattended-upgrades, up to the next restart).
    """
    if not loaded or not on_disk or loaded == on_disk:
        return None
    return (
        f"kernel module {loaded} is loaded and {on_disk} lies on disk: since an upgrade of the driver, only programs "
        "that were started before it are sure to work"
    )


def is_for_driver(packages: Sequence[str]) -> list[str]:
    """Those of the packages that ask for a reboot which bring a kernel or a driver."""
    return [
        name for name in packages if re.search(r"nvidia|linux-(image|modules|base)|pve-kernel|proxmox-kernel", name)
    ]


UNHELD = (
    "[ -x /usr/bin/unattended-upgrade ] && ! apt-config dump Unattended-Upgrade::Package-Blacklist | grep -q nvidia && "
    "dpkg-query -W -f '${db:Status-Abbrev}${Package} ${Version}\\n' 'nvidia-*' 'libnvidia-*' 'libcuda1*' 2>/dev/null | "
    "sed -n 's/^ii //p'"
)
"""Shell text: packages of the driver, with versions, that unattended-upgrades may move; nothing without that."""


def unheld(text: str, loaded: str | None) -> str | None:
    """Advice where the driver that runs may be upgraded by night. `text`: what UNHELD printed."""
    rows = [line.split() for line in text.splitlines() if line.count(" ") == 1]
    names = [name for name, version in rows if loaded and version.rpartition(":")[2].startswith(f"{loaded}-")]
    if not names:
        return None
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"unattended-upgrades may move the driver ({shown}): apt-mark hold {' '.join(names)}"
