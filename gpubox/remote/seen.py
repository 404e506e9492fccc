"""What is seen of a service while it is waited for: its processes, what they do, and whether anything moves."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from gpubox.remote import proc

GROUPS = Path("/sys/fs/cgroup")
_STATES = {"R": "runs", "S": "sleeps", "D": "waits for a disk or a card", "T": "is stopped", "Z": "has ended"}
_SECRET = re.compile(r"(--[\w-]*(?:key|token|secret|passw)[\w-]*)(=|\s+)\S+", re.I)
_SHOWN = 160
"""Characters of a command line that are shown."""
_TITLE = "sglang::"
"""How SGLang's processes call themselves once they change their title."""


@dataclass(frozen=True)
class Seen:
    """The processes of a service at one moment."""

    main: int = 0
    """Number of the main process; 0: there is none."""
    words: tuple[str, ...] = ()
    """Its command line."""
    state: str = ""
    """The kernel's letter for it (proc_pid_stat(5))."""
    count: int | None = None
    """How many processes the service has; None: not told."""
    cpu_s: float = 0
    """What all of them used since they were started, in seconds."""
    read: int = 0
    """Bytes that all of them read."""
    on_disk: bool = False
    """One of them waits for a disk, a file server or a driver."""

    def is_asked_for(self, argv: list[str]) -> bool:
        """Whether the main process is what a command line gives; one that is not seen, or renamed itself, may be."""
        return not argv or not self.words or list(self.words) == argv or self.words[0].startswith(_TITLE)

    def moved_since(self, before: Seen | None) -> bool:
        """Whether more than what waiting costs was done since an earlier moment, or by another process."""
        if before is None or before.main != self.main:
            return True
        return self.on_disk or self.cpu_s - before.cpu_s >= 0.5 or self.read - before.read >= 1 << 20

    def told(self) -> str:
        """For people."""
        if not self.main:
            return "no main process" if not self.count else f"no main process, {self.count} others"
        does = _STATES.get(self.state, f"is in state {self.state or 'unknown'}")
        count = f" in {self.count} processes" if self.count and self.count > 1 else ""
        return f"process {self.main} ({shown(list(self.words))}) {does}, {self.cpu_s:.1f} s of CPU{count}"


def look(main: int, group: str) -> Seen:
    """The processes of a service.

    + main: as systemd says it
    + group: its control group, as systemd says it: /system.slice/sglang.service
    """
    members = _members(group)
    everything = sorted({main, *(members or ())} - {0})
    fields = {pid: _stat(pid) for pid in everything}
    ticks = sum(sum(map(int, found[11:15])) for found in fields.values() if len(found) > 14)
    return Seen(
        main=main,
        words=tuple(proc.words(proc.process(main))) if main else (),
        state=next(iter(fields.get(main, [])), ""),
        count=None if members is None else len(members),
        cpu_s=ticks / os.sysconf("SC_CLK_TCK"),
        read=sum(_read(pid) for pid in everything),
        on_disk=any(found[:1] == ["D"] for found in fields.values()),
    )


def shown(argv: list[str]) -> str:
    """A command line for people, without what looks secret, cut where it is long."""
    text = _SECRET.sub(r"\1\2***", " ".join(shlex.join(argv).split()))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _members(group: str) -> list[int] | None:
    for root in (GROUPS, GROUPS / "systemd"):
        try:
            return [int(line) for line in (root / group.lstrip("/") / "cgroup.procs").read_text().split()]
        except (OSError, ValueError):
            continue
    return None


def _stat(pid: int) -> list[str]:
    """What stands after the name in brackets: the state first."""
    return proc.text(proc.process(pid), "stat").rpartition(")")[2].split()


def _read(pid: int) -> int:
    """By system calls and by mapped files."""
    found = re.findall(r"^(?:rchar|read_bytes): (\d+)$", proc.text(proc.process(pid), "io"), re.M)
    return sum(map(int, found))
