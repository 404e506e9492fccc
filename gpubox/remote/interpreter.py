"""Which Python environment a process really runs, and what is installed there. Standard library only.

What decides is the process: the files that it has mapped, then the program that it runs. The order of PATH only says
what a shell would find.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from gpubox.remote import proc

_SITE = re.compile(r"\s(/\S*?/(?:site|dist)-packages)/")
_FOLDERS = ("lib/{}/site-packages", "local/lib/{}/dist-packages", "lib/{}/dist-packages", "lib/python3/dist-packages")


class Environment(NamedTuple):
    """Where a process's packages come from."""

    prefix: str
    """The environment's folder, as `/opt/conda/envs/serve`; empty: not found."""
    sites: list[Path]
    """Folders of installed packages, the process's own first."""


def environment(process: Path, program: str, folder: str, variables: dict[str, str]) -> Environment:
    """Of a process.

    + process: its folder below /proc
    + program: the first word of its command line
    + folder: its working directory
    + variables: its environment
    """
    exe = proc.link(process, "exe").partition(" (deleted)")[0]
    mapped = _mapped(process)
    for prefix in _prefixes(program, exe, folder, variables):
        sites = _sites(prefix, exe)
        if mapped and not _real(mapped) & _real(sites):
            continue
        if sites or (prefix / "pyvenv.cfg").exists():
            return Environment(str(prefix), [*mapped, *(site for site in sites if site not in mapped)])
    return Environment(str(_prefix_of(mapped[0])) if mapped else "", mapped)


def version(sites: list[Path], package: str) -> str:
    """Of an installed package; empty: it is not there. Of several, which an install that was cut short leaves, the one
    that is whole, and of those the last that was written."""
    for site in sites:
        found = [*site.glob(f"{package}-*.dist-info"), *site.glob(f"{package}-*.egg-info")]
        if found:
            name = max(found, key=_whole_and_new).name
            return name.rpartition(".")[0][len(package) + 1 :].partition("-py3")[0]
    return ""


def _whole_and_new(path: Path) -> tuple[bool, float]:
    return (path / "METADATA").is_file() or (path / "PKG-INFO").is_file(), path.stat().st_mtime


def sources(sites: list[Path], folders: list[str], package: str) -> str:
    """The folder of a package's sources where those run instead of an installed package; empty: none do.

    + folders: what Python searches before its packages: the working directory of `-m`, and PYTHONPATH
    """
    for folder in folders:
        if Path(folder, package, "__init__.py").is_file() and Path(folder) not in sites:
            return folder
    for site in sites:
        for path in site.glob(f"{package}-*.dist-info/direct_url.json"):
            told = _json(path)
            if isinstance(told, dict) and dict(told.get("dir_info") or {}).get("editable"):
                return str(told.get("url", "")).partition("file://")[2]
    return ""


def searched_first(argv: list[str], folder: str, variables: dict[str, str]) -> list[str]:
    """Folders that Python searches before its packages (python(1): sys.path)."""
    here = [folder] if "-m" in argv else []
    entries = variables.get("PYTHONPATH", "").split(":")
    return [*here, *(str(Path(folder, entry)) for entry in entries if entry)]


def _prefixes(program: str, exe: str, folder: str, variables: dict[str, str]) -> list[Path]:
    """Environments that it may run in, the likeliest first: only such whose interpreter is the program that runs."""
    if "/" in program:
        called = [Path(folder, program)]
    else:
        parts = [part for part in variables.get("PATH", "").split(":") if part]
        called = [path for part in parts if (path := Path(folder, part, program)).exists()]
    same = [path for path in called if not exe or os.path.realpath(path) == os.path.realpath(exe)]
    prefixes = [path.parent.parent for path in same]
    return [*prefixes, *([Path(exe).parent.parent] if exe else [])]


def _sites(prefix: Path, exe: str) -> list[Path]:
    """Its folders of packages: of the Python that runs, where its name tells which that is."""
    named = re.fullmatch(r"python\d+\.\d+", Path(exe).name)
    wanted = named[0] if named and (prefix / "lib" / named[0]).is_dir() else "python3.*"
    found = [path for pattern in _FOLDERS for path in sorted(prefix.glob(pattern.format(wanted)))]
    return list(dict.fromkeys(path for path in found if path.is_dir()))


def _mapped(process: Path) -> list[Path]:
    """Folders of packages out of which it has files mapped, in the order of how many."""
    try:
        text = (process / "maps").read_text(errors="replace")
    except OSError:
        return []
    found = [match[1] for match in _SITE.finditer(text)]
    return [Path(name) for name in sorted(set(found), key=lambda name: (-found.count(name), name))]


def _real(paths: list[Path]) -> set[str]:
    return {os.path.realpath(path) for path in paths}


def _prefix_of(site: Path) -> Path:
    """/opt/conda of /opt/conda/lib/python3.11/site-packages."""
    parts = site.parts
    return Path(*parts[: parts.index("lib")]) if "lib" in parts else site


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
