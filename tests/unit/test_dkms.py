"""Installed kernels against the nvidia module: what a reboot would find."""

import pytest

from gpubox.hypervisor.dkms import Kernel, NextBoot, next_kernel, parse, warnings

OLD = Kernel("6.8.8-2-pve", image=True, headers=True, module=True)
NEW = Kernel("6.8.12-4-pve", image=True, headers=False, module=False)
BUILT = Kernel("6.8.12-4-pve", image=True, headers=True, module=True)
RUNNING = NextBoot("6.8.8-2-pve")


def test_parse_sorts_newest_first_by_value() -> None:
    listing = "6.8.8-2-pve 1 1 1\n6.8.12-4-pve 1 0 0\n6.8.9-1-pve 0 0 0\n"
    assert [kernel.version for kernel in parse(listing)] == ["6.8.12-4-pve", "6.8.9-1-pve", "6.8.8-2-pve"]
    assert parse(listing)[0] == NEW


@pytest.mark.parametrize(
    ("boot", "version"),
    [
        (RUNNING, "6.8.12-4-pve"),
        (NextBoot("x", pin="6.8.8-2-pve"), "6.8.8-2-pve"),
        (NextBoot("x", pin="5.15.0-1-pve"), None),
        (NextBoot("x", grub_default="saved"), None),
    ],
)
def test_next_kernel(boot: NextBoot, version: str | None) -> None:
    found = next_kernel([NEW, OLD], boot)
    assert (found.version if found else None) == version


@pytest.mark.parametrize(
    ("kernels", "boot", "family", "lines"),
    [
        pytest.param([BUILT, OLD], RUNNING, "proxmox", [], id="all built"),
        pytest.param([], RUNNING, "debian", [], id="a container has no kernels"),
        pytest.param(
            [NEW, OLD],
            RUNNING,
            "proxmox",
            [
                (
                    "do not reboot: the next boot takes kernel 6.8.12-4-pve, which has neither nvidia module "
                    "nor headers; "
                    "apt install proxmox-headers-6.8.12-4-pve && dkms autoinstall -k 6.8.12-4-pve"
                )
            ],
            id="the next boot has no module",
        ),
        pytest.param(
            [NEW, OLD],
            NextBoot("6.8.8-2-pve", pin="6.8.8-2-pve"),
            "proxmox",
            [
                (
                    "kernel 6.8.12-4-pve, which has neither nvidia module nor headers; "
                    "apt install proxmox-headers-6.8.12-4-pve && dkms autoinstall -k 6.8.12-4-pve"
                )
            ],
            id="pinned to the good one",
        ),
        pytest.param(
            [OLD],
            NextBoot("6.8.8-2-pve", pin="6.8.1-1-pve"),
            "proxmox",
            ["the pinned kernel 6.8.1-1-pve is not installed: unpin it or install it before any reboot"],
            id="pinned to one that is gone",
        ),
        pytest.param(
            [Kernel("6.1.0-31-amd64", True, True, False)],
            NextBoot("6.1.0-30-amd64"),
            "debian",
            [
                (
                    "do not reboot: the next boot takes kernel 6.1.0-31-amd64, which has no nvidia module; "
                    "dkms autoinstall -k 6.1.0-31-amd64"
                )
            ],
            id="headers there, not built",
        ),
        pytest.param(
            [Kernel("6.2.16-3-pve", True, False, True)],
            NextBoot("6.2.16-3-pve"),
            "proxmox",
            [
                (
                    "kernel 6.2.16-3-pve has the module, but no headers: the next driver update cannot build for it; "
                    "apt install pve-headers-6.2.16-3-pve"
                )
            ],
            id="built, headers gone, old package name",
        ),
        pytest.param(
            [NEW, OLD],
            NextBoot("6.8.8-2-pve", grub_default="saved"),
            "debian",
            [
                "GRUB_DEFAULT is saved: which kernel boots next cannot be told",
                (
                    "kernel 6.8.12-4-pve, which has neither nvidia module nor headers; "
                    "apt install linux-headers-6.8.12-4-pve && dkms autoinstall -k 6.8.12-4-pve"
                ),
            ],
            id="cannot be told",
        ),
        pytest.param(
            [Kernel("6.8.1", False, False, False)], RUNNING, "debian", [], id="leftover modules of a removed kernel"
        ),
    ],
)
@pytest.mark.pain("P07")
def test_warnings(kernels: list[Kernel], boot: NextBoot, family: str, lines: list[str]) -> None:
    assert warnings(kernels, boot, family) == lines
