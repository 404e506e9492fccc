"""A Proxmox VE container's configuration (/etc/pve/lxc/ID.conf): device entries in it; other lines stay as they are.

Proxmox rewrites this file at every change of its own: it sorts the keys and makes one description of all comments
(PVE::LXC::Config::write_pct_config). So nothing can be marked as ours by a comment: entries are known by device path.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpubox.hypervisor.nodes import Node
from gpubox.support.errors import GpuboxError

DEV_ENTRIES_SINCE = (5, 0, 7)
"""pve-container's version that brought `devN` (its changelog); Proxmox VE 8.1 and newer have it."""
MODE = "0666"
"""Of the nodes inside; Proxmox' default of 0660 keeps every user but root out."""
_SLOTS = 256
_OURS = "/dev/nvidia"
_SECTION = re.compile(r"^\[[^\]\r\n]+\][ \t\r]*$", re.M)


@dataclass
class _Part:
    """The main part or one section: its lines, with their line ends."""

    lines: list[str] = field(default_factory=list)

    @property
    def is_pending(self) -> bool:
        """It holds the changes that Proxmox makes at the next start."""
        return bool(self.lines) and self.lines[0].lower().startswith("[pve:pending]")

    def values(self) -> dict[str, str]:
        """Key -> value, as Proxmox reads it: the last of equal keys counts."""
        return dict(pair for pair in map(_pair, self.lines) if pair)

    def put(self, key: str, value: str | None) -> None:
        """Set one key where it stands, or at the end of the part's text; None removes it."""
        at = [number for number, line in enumerate(self.lines) if (_pair(line) or [""])[0] == key]
        for number in reversed(at if value is None else at[1:]):
            del self.lines[number]
        if value is None:
            return
        line = f"{key}: {value}\n"
        if not at:
            self.append(line)
        elif _pair(self.lines[at[0]]) != (key, value):
            self.lines[at[0]] = line

    def append(self, line: str) -> None:
        """A line at the end, before the blank lines that part it from the next section."""
        end = len(self.lines)
        while end and not self.lines[end - 1].strip():
            end -= 1
        if end and not self.lines[end - 1].endswith("\n"):
            self.lines[end - 1] += "\n"
        self.lines.insert(end, line)


def with_devices(text: str, nodes: Sequence[Node], version: tuple[int, ...]) -> str:
    """The configuration in which exactly `nodes` of the NVIDIA driver are passed through, each once.

    `version` is pve-container's. Entries of other devices, snapshots and comments stay. Errors: a locked container
    (a backup or migration runs), a template, no free slot.
    """
    parts = _parts(text)
    main, pending = parts[0], next((part for part in parts[1:] if part.is_pending), _Part())
    _refuse(main.values())
    if version >= DEV_ENTRIES_SINCE:
        _device_entries(main, pending, nodes)
    else:
        _raw_lines(main, nodes)
    if main.values().get("unprivileged") == "1":
        _once(main, "lxc.prlimit.memlock", "unlimited")
    return "".join(line for part in parts for line in part.lines)


def unprivileged(text: str) -> bool:
    """Whether the container maps its root to another user."""
    return _parts(text)[0].values().get("unprivileged") == "1"


def main_part(text: str) -> str:
    """What counts now: the text without pending changes and snapshots."""
    return "".join(_parts(text)[0].lines)


def own_lines(text: str) -> list[str]:
    """Raw lxc lines of the user's own about NVIDIA devices, which `devN` entries make needless."""
    return [line.strip() for line in _parts(text)[0].lines if re.match(rf"lxc\.mount\.entry\s*[:=]\s*{_OURS}", line)]


def _pair(line: str) -> tuple[str, str] | None:
    found = re.match(r"([a-z][a-z_]*\d*):\s*(.*?)\s*$", line)
    return (found.group(1), found.group(2)) if found else None


def _device_entries(main: _Part, pending: _Part, nodes: Sequence[Node]) -> None:
    """What Proxmox will use at the next start is the main part with the pending changes over it: both are looked at."""
    gone = {name.lstrip("!") for name in re.split(r"[,;\s]+", pending.values().get("delete", ""))}
    kept = {key: value for key, value in main.values().items() if key not in gone} | pending.values()
    slots = {key: value for key, value in kept.items() if re.fullmatch(r"dev\d+", key)}
    wanted = {node.path for node in nodes}
    for key, value in slots.items():
        part = pending if key in pending.values() else main
        path = _properties(value)["path"]
        if path in wanted:
            wanted.remove(path)
            part.put(key, _entry(path, value))
        elif path.startswith(_OURS):
            main.put(key, None)
            pending.put(key, None)
    taken = {*main.values(), *pending.values(), *gone}
    free = (slot for slot in (f"dev{n}" for n in range(_SLOTS)) if slot not in taken)
    for node in nodes:
        if node.path in wanted:
            slot = next(free, None)
            if slot is None:
                raise GpuboxError("all 256 dev entries of the container are taken", f"a free one for {node.path}")
            main.put(slot, _entry(node.path))


def _entry(path: str, present: str = "") -> str:
    """The entry as it should be; a person's own gid and uid stay."""
    has = _properties(present)
    if has == {**has, "path": path, "mode": MODE} and "deny-write" not in has:
        return present
    owners = [f"{key}={has[key]}" for key in ("gid", "uid") if key in has]
    return ",".join([path, f"mode={MODE}", *owners])


def _properties(value: str) -> dict[str, str]:
    """A property string: `path` may stand without its name."""
    pairs = (part.partition("=") for part in value.split(",") if part)
    return {"path": ""} | {(key if eq else "path"): (val if eq else key) for key, eq, val in pairs}


def _raw_lines(main: _Part, nodes: Sequence[Node]) -> None:
    """For a Proxmox that has no `devN`: rules by number and bind mounts, each only if it is not there yet."""
    paths = {node.path for node in nodes}
    main.lines = [line for line in main.lines if (_mount_source(line) or "") in {"", *paths}]
    for node in nodes:
        _once(main, "lxc.cgroup2.devices.allow", f"c {node.numbers} rwm")
    mounted = {_mount_source(line) for line in main.lines}
    for node in nodes:
        if node.path not in mounted:
            target = node.path.removeprefix("/")
            main.append(f"lxc.mount.entry: {node.path} {target} none bind,optional,create=file 0 0\n")


def _mount_source(line: str) -> str | None:
    found = re.match(rf"lxc\.mount\.entry\s*[:=]\s*({_OURS}\S*)\s", line)
    return found.group(1) if found else None


def _once(part: _Part, key: str, value: str) -> None:
    same = re.compile(rf"{re.escape(key)}\s*[:=]\s*{re.escape(value)}\s*$")
    if not any(same.match(line) for line in part.lines):
        part.append(f"{key}: {value}\n")


def _parts(text: str) -> list[_Part]:
    """The main part, then every section in its place."""
    starts = [found.start() for found in _SECTION.finditer(text)]
    chunks = [text[a:b] for a, b in zip([0, *starts], [*starts, len(text)], strict=True)]
    return [_Part(re.findall(r"[^\n]*\n|[^\n]+", chunk)) for chunk in chunks]


def _refuse(values: dict[str, str]) -> None:
    if lock := values.get("lock"):
        left = "it is half made: pct unlock ID && pct destroy ID" if lock == "create" else "pct unlock ID"
        raise GpuboxError(
            f"the container is locked ({lock}): Proxmox is working on it",
            "no lock",
            f"wait until that has ended and run again; where a crash left the lock, {left}",
        )
    if values.get("template") == "1":
        raise GpuboxError("the container is a template", "a container", "clone it and name the clone")
