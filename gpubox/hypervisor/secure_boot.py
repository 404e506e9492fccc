"""Secure Boot: whether the firmware would refuse the driver's module, told before a reboot makes it so.

Evidence: wvthoog/proxmox-vgpu-installer#9, NVIDIA/gpu-driver-container#44.
"""

import re
from dataclasses import dataclass

from gpubox.support.reading import reader

# without mokutil the firmware's own variable says it: four bytes of attributes, then 1 or 0
QUESTION = r"""mokutil --sb-state 2>&1 || { v=$(od -An -tu1 /sys/firmware/efi/efivars/SecureBoot-8be4df61-* | tr -s ' ')
case $v in *' 1') echo SecureBoot enabled;; *' 0') echo SecureBoot disabled;; esac; }
echo "signer: $(/sbin/modinfo -F signer nvidia)"
[ ! -e /var/lib/dkms/mok.pub ] || echo "key: $(mokutil --test-key /var/lib/dkms/mok.pub 2>&1)"; true"""
"""Shell text that prints what `parse` reads."""
KEY = "/var/lib/dkms/mok.pub"
CURE = (
    f"enrol the key that signs it: mokutil --import {KEY} (it asks for a password), then reboot at the machine's own "
    "console and confirm it there with that password; without a console, switch Secure Boot off in the firmware first"
)


@dataclass(frozen=True)
class SecureBoot:
    """What is known of it."""

    on: bool | None = None
    """None: this machine does not say (no UEFI, or a container)."""
    signer: str = ""
    """Who signed the driver's module for the running kernel; empty: nobody, or there is none."""
    enrolled: bool | None = None
    """Whether the firmware knows DKMS's own key; None: there is none, or it does not say."""


@reader("Secure Boot")
def parse(text: str) -> SecureBoot:
    """From what QUESTION prints."""
    state = re.search(r"^SecureBoot (enabled|disabled)", text, re.M)
    signer = re.search(r"^signer: *(\S.*)$", text, re.M)
    key = re.search(r"^key: *(.*)$", text, re.M)
    enrolled: bool | None = None
    if key is not None and "is not enrolled" in key[1]:
        enrolled = False
    elif key is not None and "is already enrolled" in key[1]:
        enrolled = True
    return SecureBoot(
        on=None if state is None else state[1] == "enabled",
        signer=signer[1].strip() if signer else "",
        enrolled=enrolled,
    )


def warning(found: SecureBoot, module: bool) -> str | None:
    """Why the next boot may end without cards; None: Secure Boot is off, or knows the module's key.

    + module: there is a driver's module at all
    """
    if not found.on or not module:
        return None
    if not found.signer:
        return f"Secure Boot is on and the nvidia module is not signed: the kernel refuses it; {CURE}"
    if found.enrolled is False:
        return f"Secure Boot is on and the firmware does not know the key of the nvidia module ({found.signer}); {CURE}"
    return None
