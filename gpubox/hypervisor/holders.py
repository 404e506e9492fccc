"""Kernel drivers other than NVIDIA's own that take a card, and how a card is got back from them.

Kernel 7.0 brings nova_core, which takes cards that a blacklisted nouveau no longer does: beclab/Olares#3963.
"""

import re
from collections.abc import Sequence

BLACKLIST_FILE = "/etc/modprobe.d/gpubox-blacklist-nova.conf"
"""Ours alone, and written only where an installed kernel has the module."""
MODULES = ("nouveau", "nova", "nova_core", "nova_drm")
KNOWN_QUESTION = "find /lib/modules -name 'nova[-_]core.ko*' -print -quit"
"""Shell text that prints a path where an installed kernel has nova_core."""
REFRESH = ("update-initramfs", "-u", "-k", "all")
"""The module may be loaded from the image that the kernel starts with."""


_DONE = "# the images that kernels start with have it too\n"


def blacklist_text(done: bool) -> str:
    """Our whole file for modprobe.

    + done: the kernels' start images were made anew with it; a run that was interrupted before goes on there
    """
    lines = "".join(f"blacklist {module}\n" for module in MODULES)
    return f"# written by gpubox: these take the cards before NVIDIA's module does\n{lines}{_DONE if done else ''}"


def foreign(on_bus: Sequence[str]) -> list[tuple[str, str]]:
    """PCI address and driver of cards that neither NVIDIA's driver nor a VM's (vfio-pci) holds, nor nobody.

    + on_bus: lines `ADDRESS DRIVER`
    """
    pairs = [(words[0], words[1]) for words in (line.split() for line in on_bus) if len(words) == 2]
    return [(address, driver) for address, driver in pairs if driver not in {"-", "nvidia", "vfio-pci"}]


def cure(driver: str) -> str:
    """How NVIDIA's driver gets a card that this one holds."""
    if re.fullmatch(r"nouveau|nova([-_ ]?(core|drm))?|NovaCore", driver, re.I):
        names = ", ".join(MODULES)
        return (
            f"on the machine that has the card: a line `blacklist NAME` for each of {names} in a file of "
            f"/etc/modprobe.d, then {' '.join(REFRESH)} and a reboot; install NVIDIA's driver, if it is not there"
        )
    return (
        f"see what loads the module of {driver} (lspci -k), blacklist it in a file of /etc/modprobe.d, then "
        f"{' '.join(REFRESH)} and a reboot"
    )
