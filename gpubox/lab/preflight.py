"""Can this machine run the lab? Asked before anything is changed; every reason at once, each with what to do."""

import ipaddress
import json
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from gpubox.lab import network, paths, shell
from gpubox.support.errors import GpuboxError

_NEEDED_GIB = 12
_NARROW = 16
_NAMESPACES = ("mnt", "pid", "net", "uts", "ipc", "cgroup")
_CONTROLLERS = ("devices", "memory", "pids", "freezer")


@dataclass(frozen=True)
class Machine:
    """What was found on the outer machine."""

    root: bool
    distribution: str  # ID and ID_LIKE of /etc/os-release
    architecture: str
    namespaces: frozenset[str]
    cgroups: str  # "v2", "v1" (with the legacy or hybrid layout), or "" for none
    controllers: frozenset[str]
    free_gib: float
    ours: bool  # the lab's own marker is there: bridge and addresses are the lab's
    links: frozenset[str]
    ranges: tuple[str, ...]  # networks routed elsewhere than over the lab's bridge
    missing: tuple[str, ...]  # Debian packages


def check(machine: Machine) -> None:
    """Raise one GpuboxError with every reason why the lab cannot run here."""
    reasons = problems(machine)
    if not reasons:
        return
    found = "; ".join(found for found, _, _ in reasons)
    needed = "; ".join(needed for _, needed, _ in reasons)
    raise GpuboxError(f"the practice machine cannot run here: {found}", needed, "; ".join(todo for *_, todo in reasons))


def problems(machine: Machine) -> list[tuple[str, str, str]]:
    """Found, needed, to do: for each thing that stands in the way."""
    if not machine.root:  # the rest cannot be told apart from missing rights
        return [("not root", "root", "sudo make lab-up, or run it in a virtual machine of your own")]
    debian = {"debian", "ubuntu"} & set(machine.distribution.split())
    lacking = [n for n in _NAMESPACES if n not in machine.namespaces]
    controllers = [c for c in _CONTROLLERS if c not in machine.controllers] if machine.cgroups == "v1" else []
    taken = None if machine.ours else _taken(machine)
    rows = [
        (
            not debian,
            f"distribution {machine.distribution or 'unknown'}",
            "Debian or Ubuntu",
            "use a virtual machine of one",
        ),
        (machine.architecture != "x86_64", machine.architecture, "x86_64", "use an x86_64 machine"),
        (
            bool(lacking),
            f"a kernel without {', '.join(lacking)} namespaces",
            "LXC",
            "use a kernel or machine with namespaces",
        ),
        (
            not machine.cgroups,
            "no cgroups mounted",
            "cgroup v1 or v2",
            "mount /sys/fs/cgroup, or use a machine with systemd",
        ),
        (bool(controllers), f"no cgroup {', '.join(controllers)}", "LXC's controllers", "mount these controllers"),
        (
            machine.free_gib < _NEEDED_GIB,
            f"{machine.free_gib:.1f} GiB free at {paths.state()}",
            f"{_NEEDED_GIB} GiB",
            "free some, or set GPUBOX_LAB_DIR to another disk",
        ),
        (
            bool(taken),
            taken or "",
            f"{network.BRIDGE} and {network.RANGE} for the lab",
            "remove or renumber the other one",
        ),
    ]
    return [(found, needed, todo) for wrong, found, needed, todo in rows if wrong]


def look() -> Machine:
    """Look at this machine; changes nothing."""
    return Machine(
        root=os.geteuid() == 0,
        distribution=_distribution(),
        architecture=platform.machine(),
        namespaces=frozenset(p.name for p in Path("/proc/self/ns").iterdir()),
        cgroups=cgroup_layout(),
        controllers=frozenset(p.name for p in Path("/sys/fs/cgroup").iterdir()) if cgroup_layout() else frozenset(),
        free_gib=_free_gib() + _used_by_lab_gib(),
        ours=network.is_ours(),
        links=frozenset(network.links() if shutil.which("ip") else ()),
        ranges=_other_ranges(),
        missing=tuple(shell.run("sh", str(paths.system_packages()), "--missing", "lab").split()),
    )


def cgroup_layout() -> str:
    """ "v2" for the unified layout, "v1" for legacy or hybrid, "" where none is mounted."""
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "v2"
    return "v1" if Path("/sys/fs/cgroup/devices").is_dir() else ""


def install_missing(say: shell.OnLine) -> None:
    """Install missing Debian packages; the bridge that Debian's lxc would start of its own is switched off again."""
    shell.stream(["sh", str(paths.system_packages()), "lab"], say)


def _taken(machine: Machine) -> str | None:
    if network.BRIDGE in machine.links:
        return f"a link called {network.BRIDGE} that is not the lab's"
    networks = [ipaddress.IPv4Network(r) for r in machine.ranges]
    # a wide route (a VPN's 10.0.0.0/8) only loses the lab's 256 addresses
    overlapping = [str(n) for n in networks if n.overlaps(network.RANGE) and n.prefixlen >= _NARROW]
    return f"addresses {', '.join(overlapping)} in use" if overlapping else None


def _distribution() -> str:
    try:
        text = Path("/etc/os-release").read_text()
    except OSError:
        return ""
    pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return " ".join(pairs.get(key, "").strip('"') for key in ("ID", "ID_LIKE")).strip()


def _free_gib() -> float:
    place = next(p for p in [paths.state(), *paths.state().parents] if p.exists())
    return shutil.disk_usage(place).free / 2**30


def _used_by_lab_gib() -> float:
    """A lab that is already there needs no second 12 GiB: what a finished base and the caches took counts as free."""
    return 4.0 if paths.base().is_dir() and any(paths.base().glob("pve-*")) else 0.0


def _other_ranges() -> tuple[str, ...]:
    if not shutil.which("ip"):
        return ()
    routes = json.loads(shell.run("ip", "-j", "-4", "route", "show", "table", "all") or "[]")
    named = {r["dst"] for r in routes if r.get("dev") != network.BRIDGE and r.get("dst") not in (None, "default")}
    return tuple(sorted(str(ipaddress.IPv4Network(d, strict=False)) for d in named if d.split("/")[-1] != "0"))
