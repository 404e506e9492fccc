"""What the numbers were measured on: packages, processor, memory, topology. No names and no serial numbers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

from gpubox.remote import cgroup, command
from gpubox.remote.command import CommandError

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def describe() -> dict[str, Any]:
    """Facts of this machine and of the Python that runs this, which is the service's."""
    cores, limit = cgroup.here()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cpu": _cpu(),
        "cores": cores,
        "memory_mib": min(memory, limit or memory) // 2**20,
        "topology": _topology(),
        "packages": packages(),
    }


def packages() -> dict[str, str]:
    """Name -> version of everything installed beside SGLang."""
    found = ((dist.metadata["Name"], dist.version) for dist in importlib.metadata.distributions())
    return dict(sorted({str(name).lower().replace("_", "-"): version for name, version in found if name}.items()))


def _cpu() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else None


def _topology() -> str | None:
    """`nvidia-smi topo -m` without its escape codes; None: no nvidia-smi, or it failed."""
    try:
        said = command.output(["nvidia-smi", "topo", "-m"], 20)
    except CommandError:
        return None
    return _ESCAPES.sub("", said).strip() or None
