"""What /proc says of processes. A process that ended meanwhile says nothing: no words, no text, no link."""

from __future__ import annotations

import os
import re
from pathlib import Path

PROC = Path("/proc")
_LISTENS = "0A"
"""State of a listening socket in /proc/net/tcp (include/net/tcp_states.h: TCP_LISTEN is 10)."""


def processes(root: Path | None = None) -> list[Path]:
    """The folder of each process, by number. `root`: another place than /proc."""
    found = (path for path in (root or PROC).iterdir() if path.name.isdigit())
    return sorted(found, key=lambda path: int(path.name))


def process(pid: int) -> Path:
    """The folder of one process."""
    return PROC / str(pid)


def words(process: Path, name: str = "cmdline") -> list[str]:
    """`cmdline` or `environ`: strings that each end with a zero byte."""
    try:
        return os.fsdecode((process / name).read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def variables(process: Path) -> dict[str, str]:
    """Its environment, as it was when it was started."""
    return dict(pair.split("=", 1) for pair in words(process, "environ") if "=" in pair)


def text(process: Path, name: str) -> str:
    """A file of its folder."""
    try:
        return (process / name).read_text()
    except OSError:
        return ""


def link(process: Path, name: str) -> str:
    """Where a link of its folder points."""
    try:
        return str((process / name).readlink())
    except OSError:
        return ""


def parent(process: Path) -> int:
    """Number of the process that started it; 0: it ended, or has none."""
    after_name = text(process, "stat").rpartition(")")[2].split()
    return int(after_name[1]) if len(after_name) > 1 else 0


def group(process: Path) -> int:
    """Number of its process group; 0: it ended."""
    after_name = text(process, "stat").rpartition(")")[2].split()
    return int(after_name[2]) if len(after_name) > 2 else 0


def descendants(pid: int) -> list[int]:
    """All that it started, and what those started."""
    parents = {int(path.name): parent(path) for path in processes()}
    found = [pid]
    for one in found:
        found += [child for child, above in parents.items() if above == one]
    return found[1:]


def is_in(process: Path, unit: str) -> bool:
    """Whether it is in the control group of the systemd unit."""
    paths = (line.split(":", 2)[-1] for line in text(process, "cgroup").splitlines())
    return any(unit in path.split("/") for path in paths)


def services(process: Path) -> list[str]:
    """The systemd services in whose control groups it is, outermost first; a user's own manager is none."""
    found = re.findall(r"/([^/\s]+\.service)\b", text(process, "cgroup"))
    return [unit for unit in found if not unit.startswith("user@")]


def is_seen_here(process: Path) -> bool:
    """Whether it lives among these processes: what a container holds, its own programs start and stop."""
    its, ours = link(process, "ns/pid"), link(PROC / "self", "ns/pid")
    return not its or not ours or its == ours


def listeners(port: int) -> list[Path]:
    """The processes that listen on a TCP port of any address."""
    sockets = _sockets(port)
    return [process for process in processes() if _holds(process, sockets)] if sockets else []


def named(process: Path) -> str:
    """For people."""
    return f"process {process.name} ({text(process, 'comm').strip()})"


def _sockets(port: int) -> set[str]:
    found = set()
    for table in ("net/tcp", "net/tcp6"):
        for line in text(PROC, table).splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                found.add(f"socket:[{inode}]")
    return found


def _holds(process: Path, sockets: set[str]) -> bool:
    try:
        return any(link(process, f"fd/{path.name}") in sockets for path in (process / "fd").iterdir())
    except OSError:  # it ended meanwhile, or is not ours to see
        return False
