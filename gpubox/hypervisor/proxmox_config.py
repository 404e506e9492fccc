"""A Proxmox VE container's configuration (/etc/pve/lxc/ID.conf): device entries in it; other lines stay as they are.

Proxmox rewrites this file at every change of its own: it sorts the keys and makes one description of all comments
(PVE::LXC::Config::write_pct_config). So nothing can be marked as ours by a comment: entries are known by device path.

The file is read as PVE::LXC::Config::parse_pct_config reads it (pve-container): a line is a header, a comment, a raw
`lxc.` line, `description`, `snapstate`, `delete`, a key with its value, or nothing that Proxmox understands.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpubox.hypervisor.nodes import CONTROL, Node
from gpubox.support.errors import GpuboxError

DEV_ENTRIES_SINCE = (5, 0, 7)
"""pve-container's version that brought `devN` (its changelog); Proxmox VE 8.1 and newer have it."""
MODE = "0666"
"""Of the nodes inside; Proxmox' default of 0660 keeps every user but root out."""
_SLOTS = 256
_NVIDIA = "/dev/nvidia"
_CAPS = "/dev/nvidia-caps/"
_CARD = re.compile(r"/dev/nvidia\d+")
# \s and [a-z] of Perl know ASCII only in bytes, hence re.A everywhere
_SECTION = re.compile(r"^\[(?:pve:pending|[a-z][a-z0-9_-]+)\]\s*?$", re.M | re.I | re.A)
_PENDING = re.compile(r"\[pve:pending\]\s*$", re.I | re.A)
_RAW = re.compile(r"(lxc\.[a-z0-9_.-]+)(?::|\s*=)\s*(.*?)\s*$", re.A)
_SNAPSTATE = re.compile(r"snapstate:\s*(?:prepare|delete)\s*$", re.A)
_KEY = re.compile(r"([a-z][a-z_]*\d*):\s*(.+?)\s*$", re.A)
_TRUE = re.compile(r"1|on|yes|true", re.I | re.A)
_FALSE = re.compile(r"0|off|no|false", re.I | re.A)
_DEVICE_KEYS = {"path", "mode", "uid", "gid", "deny-write"}


@dataclass
class _Part:
    """The main part or one section: its lines, with their line ends."""

    lines: list[str] = field(default_factory=list)

    @property
    def is_pending(self) -> bool:
        """It holds the changes that Proxmox makes at the next start."""
        return bool(self.lines) and bool(_PENDING.match(self.lines[0]))

    def values(self) -> dict[str, str]:
        """Key -> value, as Proxmox reads it: the last of equal keys counts."""
        return dict(pair for pair in map(_pair, self.lines) if pair)

    def put(self, key: str, value: str) -> None:
        """Set one key in the line that counts, or at the end of the part's text."""
        numbers = self._numbers(key)
        line = f"{key}: {value}\n"
        if not numbers:
            self.append(line)
        elif _pair(self.lines[numbers[-1]]) != (key, value):
            self.lines[numbers[-1]] = line

    def remove(self, key: str) -> None:
        """Take a key out, each line of it: with the last gone, one before it would count."""
        for number in reversed(self._numbers(key)):
            del self.lines[number]

    def append(self, line: str) -> None:
        """A line at the end, before the blank lines that part it from the next section."""
        end = len(self.lines)
        while end and not self.lines[end - 1].strip():
            end -= 1
        if end and not self.lines[end - 1].endswith("\n"):
            self.lines[end - 1] += "\n"
        self.lines.insert(end, line)

    def raw(self) -> list[tuple[str, str]]:
        """The raw lxc lines as key and value, in their order."""
        found = (_RAW.match(line) for line in self.lines)
        return [(one[1], one[2]) for one in found if one]

    def _numbers(self, key: str) -> list[int]:
        pairs = enumerate(map(_pair, self.lines))
        return [number for number, pair in pairs if pair and pair[0] == key]


def with_devices(text: str, nodes: Sequence[Node], version: tuple[int, ...]) -> str:
    """The configuration in which the cards of `nodes`, and no others, are passed through, each node once.

    `version` is pve-container's. What is changed are entries of the nodes that gpubox manages: cards, control nodes,
    and the caps that it wrote itself. Entries of other devices (also NVIDIA's, as /dev/nvidia-fs0), snapshots and
    comments stay. Errors: a locked container (a backup or migration runs), a template, no free slot.
    """
    parts = _parts(text)
    main, pending = parts[0], _pending(parts)
    _refuse(main.values())
    if version >= DEV_ENTRIES_SINCE:
        _device_entries(main, pending, nodes)
    else:
        _raw_lines(main, nodes)
    if _is_unprivileged(main):
        _once(main, "lxc.prlimit.memlock", "unlimited")
    return "".join(line for part in parts for line in part.lines)


def unprivileged(text: str) -> bool:
    """Whether the container maps its root to another user."""
    return _is_unprivileged(_parts(text)[0])


def main_part(text: str) -> str:
    """What counts now: the text without pending changes and snapshots."""
    return "".join(_parts(text)[0].lines)


def own_lines(text: str) -> list[str]:
    """Raw lxc lines of the user's own about cards and control nodes, which `devN` entries make needless."""
    sources = ((line.strip(), _mount_source(line)) for line in _parts(text)[0].lines)
    return [line for line, source in sources if source in CONTROL or _CARD.fullmatch(source)]


def changed_lines(before: str, after: str) -> list[str]:
    """What is taken out of a configuration, or replaced, in words: no line is lost in silence."""
    left = Counter(before.splitlines()) - Counter(after.splitlines())
    new = {pair[0]: line for line in after.splitlines() if (pair := _pair(line))}
    return [_fate(line, new) for line in left.elements()]


def stale_entries(text: str, present: Mapping[str, Node]) -> list[str]:
    """A person's own entries of NVIDIA devices that the hypervisor does not have.

    With one of them Proxmox does not start the container (PVE::LXC::Tools::get_device_mode_and_rdev).

    + present: the NVIDIA nodes that are there
    """
    parts = _parts(text)
    used = {**_kept(parts[0], _pending(parts)), **_pending(parts).values()}
    return [f"{key}: {value}" for key, value in _slots(used).items() if _is_absent(_path(value), present)]


def _fate(line: str, new: Mapping[str, str]) -> str:
    """What became of a line that is not there any more. `new`: key -> its line now."""
    pair = _pair(line)
    instead = new.get(pair[0], "") if pair else ""
    becomes = _pair(instead)
    if pair and becomes and _path(pair[1]) == _path(becomes[1]):
        return f"'{line.strip()}' becomes '{instead}'"
    return f"'{line.strip()}' is taken out"


def _is_absent(path: str, present: Mapping[str, Node]) -> bool:
    managed = path in CONTROL or _CARD.fullmatch(path)  # those are put right anyway
    return path.startswith(_NVIDIA) and not managed and path not in present


def _is_unprivileged(main: _Part) -> bool:
    """As PVE::LXC::update_lxc_config: the option, or an id map of the person's own."""
    return _true(main.values().get("unprivileged", "0")) or any(key == "lxc.idmap" for key, _ in main.raw())


def _true(value: str) -> bool:
    """A boolean as PVE::JSONSchema::parse_boolean reads it. What it does not know, parse_pct_config keeps as text, and
    any text but 0 is true in Perl."""
    if _TRUE.fullmatch(value):
        return True
    return not _FALSE.fullmatch(value)


def _pair(line: str) -> tuple[str, str] | None:
    """Key and value of a line that Proxmox takes for one; None: a comment, a raw line, a blank one, or foreign."""
    if _RAW.match(line) or _SNAPSTATE.search(line):
        return None
    found = _KEY.match(line)
    return (found[1], found[2]) if found else None


def _slots(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if re.fullmatch(r"dev\d+", key, re.A)}


def _kept(main: _Part, pending: _Part) -> dict[str, str]:
    gone = _deletions(pending)
    return {key: value for key, value in main.values().items() if key not in gone}


def _deletions(pending: _Part) -> set[str]:
    """Keys that go at the next start (PVE::AbstractConfig::parse_pending_delete)."""
    words = re.sub(r"[,;]", " ", pending.values().get("delete", "")).split()
    return {word.removeprefix("!") for word in words}


def _device_entries(main: _Part, pending: _Part, nodes: Sequence[Node]) -> None:
    """What Proxmox will use at the next start is the main part with the pending changes over it: both are looked at."""
    needed = {node.path for node in nodes}
    wanted = set(needed)
    coming = _slots(pending.values())
    staying = {key: value for key, value in _slots(_kept(main, pending)).items() if key not in coming}
    for part, slots in ((main, staying), (pending, coming)):
        for key, value in slots.items():
            path = _path(value)
            if path in wanted:
                wanted.remove(path)
                part.put(key, _entry(path, value))
            elif _goes(path, value, needed):
                part.remove(key)
                hidden = main.values().get(key, "")  # what a pending value stood in place of would count again
                if hidden and _goes(_path(hidden), hidden, needed):
                    main.remove(key)
    taken = {*main.values(), *pending.values(), *_deletions(pending)}
    free = (slot for slot in (f"dev{n}" for n in range(_SLOTS)) if slot not in taken)
    for node in nodes:
        if node.path in wanted:
            slot = next(free, None)
            if slot is None:
                raise GpuboxError("all 256 dev entries of the container are taken", f"a free one for {node.path}")
            main.put(slot, _entry(node.path))


def _goes(path: str, value: str, needed: set[str]) -> bool:
    """Whether an entry that nothing asks for goes.

    Which cards the container has is what its data says, whoever wrote the entry; a second entry of a node keeps
    Proxmox from starting the container (mknod of a node that is there). Of the others only what has the form that
    gpubox writes: control nodes of a container without cards, and caps where the data asks for caps.
    """
    if _CARD.fullmatch(path) or path in needed:
        return True
    caps = any(one.startswith(_CAPS) for one in needed)
    ours = value == _entry(path)
    return ours and (path in CONTROL or (caps and path.startswith(_CAPS)))


def _entry(path: str, present: str = "") -> str:
    """The entry as it should be; a person's own gid and uid stay, and all of an entry that lets everybody write."""
    has = _properties(present) or {}
    mode = has.get("mode", "")
    open_to_all = re.fullmatch(r"0[0-7]{3}", mode) is not None and int(mode, 8) & 0o666 == 0o666
    if open_to_all and not _true(has.get("deny-write", "0")):
        return present
    owners = [f"{key}={has[key]}" for key in ("gid", "uid") if key in has]
    return ",".join([path, f"mode={MODE}", *owners])


def _path(value: str) -> str:
    """The device of an entry; empty: Proxmox cannot read the entry."""
    path = (_properties(value) or {}).get("path", "")
    return re.sub(r"/{2,}", "/", path)


def _properties(value: str) -> dict[str, str] | None:
    """A device's property string as PVE::JSONSchema::parse_property_string reads it: `path` may stand without its name.

    None: an unknown or repeated key, or no path.
    """
    found: dict[str, str] = {}
    for part in value.split(","):
        if not part.strip():
            continue
        key, equals, text = part.partition("=")
        if not equals:
            key, text = "path", part
        if key not in _DEVICE_KEYS or key in found or not text:
            return None
        found[key] = text
    return found if found.get("path", "").startswith("/dev/") else None


def _raw_lines(main: _Part, nodes: Sequence[Node]) -> None:
    """For a Proxmox that has no `devN`: rules by number and bind mounts, each only if it is not there yet.

    Mounts of cards that the data does not name go; of the control nodes only those in the very form of ours. What else
    a person mounts of NVIDIA's (a folder as /dev/nvidia-caps) stays.
    """
    paths = {node.path for node in nodes}
    main.lines = [line for line in main.lines if not _is_stray_mount(line, paths)]
    for node in nodes:
        _once(main, "lxc.cgroup2.devices.allow", f"c {node.numbers} rwm")
    mounted = {_mount_source(line) for line in main.lines}
    for node in nodes:
        if node.path not in mounted:
            main.append(_mount(node.path))


def _is_stray_mount(line: str, paths: set[str]) -> bool:
    source = _mount_source(line)
    if not source or source in paths:
        return False
    return bool(_CARD.fullmatch(source)) or (source in CONTROL and line.rstrip() == _mount(source).rstrip())


def _mount(path: str) -> str:
    return f"lxc.mount.entry: {path} {path.removeprefix('/')} none bind,optional,create=file 0 0\n"


def _mount_source(line: str) -> str:
    """The NVIDIA device or folder that a raw line mounts; empty: none."""
    found = _RAW.match(line)
    if found is None or found[1] != "lxc.mount.entry":
        return ""
    source = (found[2].split() or [""])[0]
    return source if source.startswith(_NVIDIA) else ""


def _once(part: _Part, key: str, value: str) -> None:
    if (key, value) not in part.raw():
        part.append(f"{key}: {value}\n")


def _pending(parts: Sequence[_Part]) -> _Part:
    """Of several such sections the last: each begins anew, and what it holds takes the place of what was read."""
    found = [part for part in parts[1:] if part.is_pending]
    return found[-1] if found else _Part()


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
    if _true(values.get("template", "0")):
        raise GpuboxError("the container is a template", "a container", "clone it and name the clone")
