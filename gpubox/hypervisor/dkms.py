"""Installed kernels: whether each has the nvidia module, and what the next boot would find."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpubox.support.reading import reader
from gpubox.support.versions import package_at_least, package_key


@dataclass(frozen=True)
class Kernel:
    """An installed kernel."""

    version: str
    """As `uname -r` prints it."""
    image: bool
    """There is an image to boot."""
    headers: bool
    """Its headers are there, so that DKMS can build for it."""
    module: bool
    """An nvidia module for it is there."""


@dataclass(frozen=True)
class NextBoot:
    """What decides which kernel boots next."""

    running: str
    pin: str = ""
    """Version that Proxmox has pinned (`proxmox-boot-tool kernel pin`), or the pin for the next boot alone."""
    grub_default: str = "0"
    """GRUB_DEFAULT; another than 0 means that a person chose an entry, and the newest kernel may not be next."""


@reader("installed kernels")
def parse(listing: str) -> list[Kernel]:
    """Kernels, newest first, from lines `VERSION IMAGE HEADERS MODULE` with 1 or 0 each."""
    rows = [line.split() for line in listing.splitlines() if line.strip()]
    found = [Kernel(version, *(flag == "1" for flag in flags)) for version, *flags in rows]
    return sorted(found, key=lambda kernel: package_key(kernel.version), reverse=True)


def next_kernel(kernels: Sequence[Kernel], boot: NextBoot) -> Kernel | None:
    """The kernel that the next boot takes: the pinned one, else the newest with an image; None: cannot be told."""
    bootable = [kernel for kernel in kernels if kernel.image]
    if boot.pin:
        return next((kernel for kernel in bootable if kernel.version == boot.pin), None)
    if boot.grub_default not in {"", "0"} or not bootable:
        return None
    return bootable[0]


def warnings(kernels: Sequence[Kernel], boot: NextBoot, family: str) -> list[str]:
    """What keeps a reboot from ending with cards, the most urgent first; empty: every kernel has its module.

    `family`: `proxmox` or `debian`, which name their header packages differently.
    """
    bootable = [kernel for kernel in kernels if kernel.image]
    lacking = [kernel for kernel in bootable if not kernel.module]
    coming = next_kernel(kernels, boot)
    lines = []
    if boot.pin and coming is None and bootable:
        lines.append(f"the pinned kernel {boot.pin} is not installed: unpin it or install it before any reboot")
    if coming in lacking and coming is not None:
        lines.append(f"do not reboot: the next boot takes kernel {coming.version}, {_cure(coming, family)}")
    if coming is None and lacking and not boot.pin:
        lines.append(f"GRUB_DEFAULT is {boot.grub_default}: which kernel boots next cannot be told")
    lines += [f"kernel {kernel.version}, {_cure(kernel, family)}" for kernel in lacking if kernel != coming]
    lines += [
        f"kernel {kernel.version} has the module, but no headers: the next driver update cannot build for it; "
        f"apt install {_headers(kernel.version, family)}"
        for kernel in bootable
        if kernel.module and not kernel.headers
    ]
    return lines


def _cure(kernel: Kernel, family: str) -> str:
    build = f"dkms autoinstall -k {kernel.version}"
    if kernel.headers:
        return f"which has no nvidia module; {build}"
    return f"which has neither nvidia module nor headers; apt install {_headers(kernel.version, family)} && {build}"


def _headers(version: str, family: str) -> str:
    """Proxmox renamed its packages with kernel 6.5 (pve-headers before)."""
    if family != "proxmox":
        return f"linux-headers-{version}"
    return f"{'proxmox' if package_at_least(version, '6.5') else 'pve'}-headers-{version}"
