"""What binds a process that runs: processors, NUMA nodes, priorities, limits; only where it differs from a login's.

Runs on the machine that is looked at; standard library only. A login there is this program itself: what the server got
from numactl, taskset, nice, ulimit or its unit is the difference between the two.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from pathlib import Path

from gpubox.remote import proc

LIMITS = {
    "Max cpu time": "CPU",
    "Max file size": "FSIZE",
    "Max data size": "DATA",
    "Max stack size": "STACK",
    "Max core file size": "CORE",
    "Max resident set": "RSS",
    "Max processes": "NPROC",
    "Max open files": "NOFILE",
    "Max locked memory": "MEMLOCK",
    "Max address space": "AS",
    "Max file locks": "LOCKS",
    "Max pending signals": "SIGPENDING",
    "Max msgqueue size": "MSGQUEUE",
    "Max nice priority": "NICE",
    "Max realtime priority": "RTPRIO",
    "Max realtime timeout": "RTTIME",
}
"""As /proc/PID/limits calls them -> as systemd's Limit...= does."""
UNIT_FILES = 1048576
"""Open files that gpubox's unit allows; it locks memory without limit."""
_OWN_FILES = 65535
_OWN_STACK = 1024 * _OWN_FILES
"""What SGLang itself raises its soft limits to (read in sglang 0.5.9: utils/common.py, set_ulimit)."""
_MEMORY = {"bind": "bind", "interleave": "interleave", "prefer": "preferred", "local": "local"}
_SCHEDULERS = {1: "fifo", 2: "rr", 3: "batch", 5: "idle"}
_IO = {1: "realtime", 2: "best-effort", 3: "idle"}
_IOPRIO_GET = {"x86_64": 251, "aarch64": 31}
_NICE_FIELD = 16
"""Of /proc/PID/stat, counted behind the name."""


def bindings(process: Path) -> dict[str, object]:
    """Under the names of a profile's `process`, and `told`: what systemd has no words for.

    + process: its folder below /proc
    """
    login = process.with_name("self")
    found: dict[str, object] = {}
    if (cpus := _allowed(process)) != _allowed(login):
        found["cpus"] = cpus
    found.update(_memory(process))
    if (nice := _nice(process)) != _nice(login):
        found["nice"] = nice
    if (score := _score(process)) != _score(login):
        found["oom_score_adjust"] = score
    found.update(_scheduler(process))
    found.update(_io(process))
    if limits := changed_limits(proc.text(process, "limits"), proc.text(login, "limits")):
        found["limits"] = limits
    return found


def memory_policy(line: str) -> dict[str, object]:
    """The NUMA policy in a line of /proc/PID/numa_maps (mpol_to_str of the kernel); empty: the default."""
    found = re.match(r"[0-9a-f]+ ([a-z]+(?: \(many\)| interleave)?)(?:=[a-z|]+)?(?::([0-9,-]+))?(?: |$)", line)
    if not found or found[1] == "default":
        return {}
    if found[1] not in _MEMORY:
        return {"told": [f"NUMA policy {found[1]}:{found[2] or ''}"]}
    nodes = {"numa_nodes": found[2]} if found[2] else {}
    return {"numa_policy": _MEMORY[found[1]], **nodes}


def changed_limits(theirs: str, login: str) -> dict[str, str]:
    """Soft limits (texts of /proc/PID/limits) that differ from a login's and that the unit does not give anyway."""
    mine = _limits(login)
    return {
        name: value
        for name, value in _limits(theirs).items()
        if mine.get(name, value) != value and not _is_given(name, value)
    }


def _is_given(name: str, value: str) -> bool:
    """The unit allows as much, or SGLang itself raised it."""
    if name == "MEMLOCK":
        return True
    number = float("inf") if value == "infinity" else int(value)
    return (name == "NOFILE" and number <= UNIT_FILES) or (name == "STACK" and number == _OWN_STACK)


def _limits(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name = next((known for known in LIMITS if line.startswith(known)), "")
        words = line[len(name) :].split()
        if name and words:
            found[LIMITS[name]] = words[0].replace("unlimited", "infinity")
    return found


def _allowed(process: Path) -> str:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", proc.text(process, "status"), re.M)
    return found[1] if found else ""


def _memory(process: Path) -> dict[str, object]:
    """Of the first mappings, the program's own, which have the process's policy. No more of it is read: the kernel
    walks all pages of a mapping for its line, and a server has terabytes mapped."""
    try:
        with (process / "numa_maps").open() as file:
            return memory_policy(file.readline())
    except OSError:
        return {}


def _nice(process: Path) -> int:
    fields = proc.text(process, "stat").rpartition(")")[2].split()
    return int(fields[_NICE_FIELD]) if len(fields) > _NICE_FIELD else 0


def _score(process: Path) -> int:
    return int(proc.text(process, "oom_score_adj").strip() or "0")


def _scheduler(process: Path) -> dict[str, object]:
    try:
        kind = _SCHEDULERS.get(os.sched_getscheduler(int(process.name)) & 0xFF)
        real_time = kind in {"fifo", "rr"}
        priority = os.sched_getparam(int(process.name)).sched_priority if real_time else 0
    except OSError:
        return {}
    if not kind:
        return {}
    return {"cpu_scheduling": kind, **({"cpu_priority": priority} if priority else {})}


def _io(process: Path) -> dict[str, object]:
    """ioprio_get(2): its class in the upper bits, 0: none was set."""
    number = _IOPRIO_GET.get(platform.machine())
    if number is None:
        return {}
    value = ctypes.CDLL(None).syscall(number, 1, int(process.name))
    kind = _IO.get(value // 8192) if value > 0 else None  # shifted by 13
    if kind is None:
        return {}
    return {"io_class": kind, **({"io_priority": value % 8} if kind != "idle" else {})}
