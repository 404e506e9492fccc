"""The Pythons of this machine that may stand for a box's: the oldest one that is promised, and the newest."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

OLDEST = (3, 9)
"""Debian 11's; Ubuntu 22.04 has 3.10."""


@cache
def interpreters() -> dict[str, str]:
    """Version, as `3.9`, -> program: the oldest and the newest that are found from OLDEST on.

    A machine that has no other tests with this one alone; `make lint` proves the floor in any case.
    """
    found = {sys.version_info[:2]: sys.executable}
    for program in _candidates():
        version = _version(program)
        if version is not None and version >= OLDEST:
            found.setdefault(version, program)
    chosen = {min(found), max(found)}
    return {f"{major}.{minor}": found[major, minor] for major, minor in sorted(chosen)}


def _candidates() -> list[str]:
    folders = [Path(part) for part in os.environ.get("PATH", "").split(":") if part]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    programs = [path for folder in folders for path in sorted(folder.glob("python3.[0-9]*"))]
    programs += sorted(pyenv.glob("versions/3.*/bin/python3"))
    return [str(path) for path in programs if path.name.count("-") == 0 and os.access(path, os.X_OK)]


def _version(program: str) -> tuple[int, int] | None:
    ask = "import sys, json, zlib; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-I", "-c", ask], capture_output=True, text=True, timeout=20)
        major, minor = done.stdout.split()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return int(major), int(minor)
