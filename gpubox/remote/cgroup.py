"""What a container may use, from its own control group: cores, and memory without what is only file
cache.

`memory.current` counts the page cache: right after a model was loaded it stands near the limit,
though nearly all of it would be given up (ollama/ollama#15704). And a container's /sys lists all
cores of its host (ollama/ollama#5554), as nproc does under a quota. One file, standard library
only.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
"""Inside a container's own namespace its limits stand here, at the top."""
CPUSET = ("cpuset.cpus.effective", "cpuset/cpuset.effective_cpus", "cpuset/cpuset.cpus")
QUOTA = ("cpu.max",)
QUOTA_V1 = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
LIMIT = ("memory.max", "memory/memory.limit_in_bytes")
USED = ("memory.current", "memory/memory.usage_in_bytes")
STAT = ("memory.stat", "memory/memory.stat")
_UNLIMITED = 1 << 60
"""Version 1 writes no limit as a number near 2^63."""
_KERNEL = ("slab_unreclaimable", "kernel_stack", "pagetables", "percpu", "sock")


def first(names: tuple[str, ...]) -> str:
    """Shell text that prints the first of the files that is there; nothing where none is."""
    paths = " ".join(f"{ROOT}/{name}" for name in names)
    return f'for f in {paths}; do [ ! -r "$f" ] || {{ cat "$f"; break; }}; done'


QUOTA_TEXT = (
    f"if [ -r {ROOT}/{QUOTA[0]} ]; then cat {ROOT}/{QUOTA[0]}; "
    f"else cat {' '.join(f'{ROOT}/{name}' for name in QUOTA_V1)} 2>/dev/null || true; fi"
)
"""Shell text that prints quota and period in microseconds."""
AFFINITY_TEXT = "env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; grep -c ^processor /proc/cpuinfo || true"
"""Shell text: CPUs by affinity (nproc heeds OMP_NUM_THREADS), and those of /proc, which lxcfs
cuts by a quota."""


def cores(shown: str, cpuset: str, quota: str) -> int:
    """CPUs that may be used; at least one.

    + shown: what AFFINITY_TEXT printed; a 0 is no count
    + cpuset: as `0-3,8`; empty: not known
    + quota: as `200000 100000` (microseconds of each period); `max` and -1 are none
    """
    counts = [int(word) for word in shown.split() if word.isdigit() and int(word) > 0]
    named = _count(cpuset)
    words = quota.split()
    if named:
        counts.append(named)
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
        counts.append(max(1, int(words[0]) // int(words[1])))
    return min(counts, default=1)


def limit(text: str) -> int | None:
    """Bytes of memory that the control group allows; None: no limit."""
    word = (text.split() or ["max"])[0]
    return int(word) if word.isdigit() and int(word) < _UNLIMITED else None


def in_use(stat: str, used: str = "") -> int:
    """Bytes that nothing but an end of programs gives back: anonymous and shared memory, and the
    kernel's own.

    + stat: text of memory.stat, of version 2 or 1
    + used: all that is counted, page cache too; what there is to go by without a memory.stat
    """
    rows = dict(re.findall(r"^(\w+) (\d+)$", stat, re.M))
    values = {name: int(value) for name, value in rows.items()}
    if "anon" in values:
        return values["anon"] + sum(values.get(name, 0) for name in ("shmem", *_KERNEL))
    whole = "total_" if "total_rss" in values else ""  # with the groups below it
    if f"{whole}rss" not in values:
        return int(used) if used.strip().isdigit() else 0
    if f"{whole}shmem" in values:
        return values[f"{whole}rss"] + values[f"{whole}shmem"]
    # kernels before 4.19 count shared memory only in these lists
    listed = values.get(f"{whole}active_anon", 0) + values.get(f"{whole}inactive_anon", 0)
    return max(values[f"{whole}rss"], listed)


def free(limit_text: str, stat: str, used: str, available: int) -> int:
    """Bytes that may still be taken: what the limit leaves, and never more than the machine has.

    + limit_text, stat, used: of the control group, as for `limit` and `in_use`
    + available: bytes of MemAvailable
    """
    allowed = limit(limit_text)
    if allowed is None:
        return available
    return max(0, min(available, allowed - in_use(stat, used)))


def here(root: Path = ROOT, cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[int, int | None]:
    """Cores that this machine or container may use, and its limit of memory in bytes (None:
    none)."""
    quota = _read(root, QUOTA) or " ".join(_read(root, (name,)).strip() for name in QUOTA_V1)
    listed = len(re.findall(r"(?m)^processor", cpuinfo.read_text())) if cpuinfo.exists() else 0
    shown = f"{len(os.sched_getaffinity(0))} {listed}"
    return cores(shown, _read(root, CPUSET), quota), limit(_read(root, LIMIT))


def _read(root: Path, names: tuple[str, ...]) -> str:
    for name in names:
        try:
            return (root / name).read_text()
        except OSError:
            continue
    return ""


def _count(cpuset: str) -> int:
    """How many CPUs `0-3,8` are; 0: it says nothing."""
    found = 0
    for part in re.findall(r"\d+(?:-\d+)?", cpuset):
        first_one, _, last_one = part.partition("-")
        found += int(last_one or first_one) - int(first_one) + 1
    return found
