"""The next boot's kernel command line: which loader, which file, which commands."""

import pytest

from gpubox.hypervisor.boot import CMDLINE_FILE, GRUB_FILE, BootFiles, Change, change, loaders, missing, with_words
from gpubox.support.errors import CannotTellError, GpuboxError

UEFI = """Re-executing '/usr/sbin/proxmox-boot-tool' in new private mount namespace..
System currently booted with uefi
4F2A-1B3C is configured with: uefi (versions: 6.8.12-4-pve, 6.8.8-2-pve)
4F2B-9D0E is configured with: uefi (versions: 6.8.12-4-pve, 6.8.8-2-pve)
"""
GRUB_ON_ZFS = UEFI.replace("booted with uefi", "booted with legacy bios").replace("with: uefi", "with: grub")
BOTH = UEFI.replace("4F2B-9D0E is configured with: uefi", "4F2B-9D0E is configured with: grub")
OURS = '# written by gpubox\nGRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt pcie_aspm=off"\n'
WORDS = ["iommu=pt", "pcie_aspm=off"]
LINE = "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n"
UPDATE, REFRESH = ["update-grub"], ["proxmox-boot-tool", "refresh"]


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (BootFiles(grub=True), ["grub"]),
        (BootFiles(UEFI, grub=True), ["systemd-boot"]),
        (BootFiles(GRUB_ON_ZFS, grub=True), ["grub"]),
        (BootFiles(BOTH, grub=True), ["systemd-boot", "grub"]),
    ],
)
@pytest.mark.pain("P15")
def test_loader_that_is_really_used(found: BootFiles, names: list[str]) -> None:
    assert loaders(found) == names


@pytest.mark.parametrize("found", [BootFiles(), BootFiles("E: no ESP found"), BootFiles(cmdline=LINE)])
def test_unknown_loader_is_cannot_tell(found: BootFiles) -> None:
    with pytest.raises(CannotTellError):
        change(found, WORDS)


@pytest.mark.parametrize(
    ("found", "words", "expected"),
    [
        pytest.param(BootFiles(grub=True), WORDS, Change({GRUB_FILE: OURS}, [UPDATE]), id="GRUB"),
        pytest.param(BootFiles(grub=True, ours=OURS), WORDS, Change({}, []), id="GRUB, second run"),
        pytest.param(BootFiles(grub=True, ours=OURS), [], Change({GRUB_FILE: None}, [UPDATE]), id="GRUB, taken back"),
        pytest.param(BootFiles(grub=True, ours=OURS, marker=True), WORDS, Change({}, [UPDATE]), id="was interrupted"),
        pytest.param(
            BootFiles(UEFI, grub=True, cmdline=LINE),
            WORDS,
            Change({CMDLINE_FILE: "root=ZFS=rpool/ROOT/pve-1 boot=zfs iommu=pt pcie_aspm=off\n"}, [REFRESH]),
            id="systemd-boot: GRUB's file is not touched",
        ),
        pytest.param(
            BootFiles(GRUB_ON_ZFS, grub=True),
            WORDS,
            Change({GRUB_FILE: OURS}, [UPDATE, REFRESH]),
            id="GRUB under Proxmox",
        ),
        pytest.param(
            BootFiles(BOTH, grub=True, cmdline=LINE.strip() + " iommu=pt pcie_aspm=off\n"),
            WORDS,
            Change({GRUB_FILE: OURS}, [UPDATE, REFRESH]),
            id="one of both is right already",
        ),
        pytest.param(BootFiles(), [], Change({}, []), id="nothing asked, nothing looked at"),
    ],
)
@pytest.mark.pain("P15", "P58")
def test_change(found: BootFiles, words: list[str], expected: Change) -> None:
    assert change(found, words) == expected


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("quiet iommu=pt\n", "quiet iommu=pt\n"),
        ("quiet iommu=off splash\n", "quiet splash iommu=pt\n"),
        ("iommu=pt quiet iommu=off\n", "quiet iommu=pt\n"),
        ("quiet  console=tty0 console=ttyS0", "quiet console=tty0 console=ttyS0 iommu=pt\n"),
        ("", "iommu=pt\n"),
    ],
)
def test_a_word_replaces_those_of_its_key_only(line: str, after: str) -> None:
    assert with_words(line, ["iommu=pt"]) == after
    assert with_words(after, ["iommu=pt"]) == after


@pytest.mark.parametrize("word", ['a="b c"', "$(reboot)", "a b", "", "a;b", "a'b", "a%b\n"])
def test_odd_words_are_refused(word: str) -> None:
    with pytest.raises(GpuboxError, match="cannot be written safely"):
        change(BootFiles(grub=True), [word])


@pytest.mark.parametrize(
    ("live", "absent"),
    [
        ("BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt pcie_aspm=off", []),
        ("iommu=pt iommu=off pcie_aspm=off", ["iommu=pt"]),
        ("quiet", WORDS),
    ],
)
@pytest.mark.pain("P15", "P58")
def test_missing_in_the_running_kernel(live: str, absent: list[str]) -> None:
    assert missing(live, WORDS) == absent
