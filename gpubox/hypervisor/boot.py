"""The kernel command line for the next boot: which loader the machine really uses, and its files as text.

A Proxmox machine whose root is ZFS on UEFI boots with systemd-boot, and editing GRUB's file there does nothing
(field: cards that vanish until pcie_aspm=off really reaches the kernel).
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubox.support.errors import CannotTellError, GpuboxError

Loader = Literal["grub", "systemd-boot"]

GRUB_FILE = "/etc/default/grub.d/gpubox.cfg"
"""Ours alone; Debian's grub-mkconfig reads the files of this folder after /etc/default/grub."""
CMDLINE_FILE = "/etc/kernel/cmdline"
"""The person's file: words are added or given another value in it, the rest stays."""
MARKER = "/etc/kernel/gpubox-refresh"
"""There while a change of the files has not reached the boot loader: an interrupted run is completed by the next."""


@dataclass(frozen=True)
class BootFiles:
    """What decides the next boot, as found. None: not there."""

    proxmox_status: str | None = None
    """Output of `proxmox-boot-tool status` where /etc/kernel/proxmox-boot-uuids names partitions."""
    grub: bool = False
    """update-grub and /boot/grub are there."""
    cmdline: str | None = None
    """Text of /etc/kernel/cmdline."""
    ours: str | None = None
    """Text of our own file for GRUB."""
    marker: bool = False


@dataclass(frozen=True)
class Change:
    """Files to write (path -> text; None: remove) and the commands, as words, that bring them to the boot loader."""

    files: dict[str, str | None]
    commands: list[list[str]]


def loaders(found: BootFiles) -> list[Loader]:
    """The boot loaders in use; Proxmox may have both. Error: cannot tell, when neither is recognised."""
    if found.proxmox_status is not None:
        configured = " ".join(re.findall(r"is configured with:(.*)$", found.proxmox_status, re.M))
        names: dict[str, Loader] = {"uefi": "systemd-boot", "grub": "grub"}
        used = [loader for word, loader in names.items() if re.search(rf"\b{word}\b", configured)]
        if used:
            return used
        raise CannotTellError(f"proxmox-boot-tool status names no loader: {found.proxmox_status.strip()[-200:]}")
    if found.grub:
        return ["grub"]
    raise CannotTellError(
        "no boot loader is recognised here",
        "GRUB, or systemd-boot under proxmox-boot-tool",
        "set the kernel's command line yourself and leave kernel_command_line empty",
    )


def change(found: BootFiles, words: Sequence[str]) -> Change:
    """What brings `words` (as `iommu=pt`) into the next boot's command line; empty when they are there.

    Without words our GRUB file goes; words once added to /etc/kernel/cmdline stay, since nothing tells them from a
    person's. Errors: a word with quotes, blanks or shell characters; the loader cannot be told.
    """
    _refuse_odd(words)
    if not words and found.ours is None and not found.marker:
        return Change({}, [])
    used = loaders(found)
    files: dict[str, str | None] = {}
    if "grub" in used and (ours := grub_text(words)) != found.ours:
        files[GRUB_FILE] = ours
    if "systemd-boot" in used and words and (line := with_words(found.cmdline or "", words)) != found.cmdline:
        files[CMDLINE_FILE] = line
    if not files and not found.marker:
        return Change({}, [])
    commands = [["update-grub"]] if "grub" in used else []
    commands += [["proxmox-boot-tool", "refresh"]] if found.proxmox_status is not None else []
    return Change(files, commands)


def with_words(line: str, words: Sequence[str]) -> str:
    """A command line with `words` in it: one of the same key is replaced, the others keep their place."""
    keys = {word.partition("=")[0] for word in words}
    present = line.split()
    if all(word in present for word in words) and sum(w.partition("=")[0] in keys for w in present) == len(words):
        return line
    return " ".join([*(word for word in present if word.partition("=")[0] not in keys), *words]) + "\n"


def grub_text(words: Sequence[str]) -> str | None:
    """Our file for GRUB: the words come after the person's own, and the kernel takes the last of equal keys."""
    if not words:
        return None
    added = " ".join(words)
    return f'# written by gpubox\nGRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {added}"\n'


def missing(live: str, words: Sequence[str]) -> list[str]:
    """The words that the running kernel was not started with (`live`: the text of /proc/cmdline)."""
    last = {word.partition("=")[0]: word for word in live.split()}
    return [word for word in words if last.get(word.partition("=")[0]) != word]


def _refuse_odd(words: Sequence[str]) -> None:
    for word in words:
        if not re.fullmatch(r"[\w.:,/=@+-]+", word) or shlex.quote(word) != word:
            raise GpuboxError(f"kernel_command_line: {word!r} cannot be written safely", "words as iommu=pt")
