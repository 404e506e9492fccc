"""What an environment consists of, written down when it was built, and what is another since. No file is changed.

A run compares size and time of every file with what was written down: one pass, without reading a file. Where a time
alone differs, that file is read. The deep form reads all. Bytecode (`__pycache__`) is Python's own and not looked at.

Of an environment that was built before there was such a list, the packages' own RECORD files say what there must be
(https://packaging.python.org/en/latest/specifications/recording-installed-packages/); a file counts as changed only if
the kernel changed its inode after the environment was finished.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import posixpath
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIST = "gpubox-files"
"""In the environment's folder. First line: the digest of all sizes and times; then `SIZE MTIME_NS SHA256 PATH` each."""
SHOWN = 20
"""At most so many files are named; how many there are is always told."""
_BIG = 8 << 20
"""Bytes from where on a file's hash is taken from its package's RECORD, if its size is the one there."""
_RESTORED = 1000
"""More files than this with a new inode time: the folder was copied or restored, and these times say nothing."""
_OWN = {LIST, f".{LIST}.gpubox-new", "gpubox.json", ".gpubox.json.gpubox-new", ".lock"}
_SKIPPED = "__pycache__"
_CODE = (".py", ".pth", ".so")
_PATCHED = ".gpubox-original-"
"""Part of the name of what gpubox.remote.patch keeps beside a file that it changed and judges itself."""


@dataclass(frozen=True)
class Scan:
    """One pass over a folder: files in a fixed order, with numbers for each."""

    paths: list[str]
    sizes: array[int]
    mtimes: array[int]
    """Nanoseconds."""
    ctimes: array[int]
    """Nanoseconds; when the kernel last changed the inode."""

    def digest(self) -> str:
        """Of paths, sizes and times of change."""
        total = hashlib.sha256("\0".join(self.paths).encode(errors="surrogateescape"))
        total.update(self.sizes.tobytes())
        total.update(self.mtimes.tobytes())
        return total.hexdigest()


def scan(root: Path) -> Scan:
    """All files and links below a folder but bytecode and what gpubox itself writes there."""
    found = Scan([], array("q"), array("q"), array("q"))
    folders = [""]
    while folders:
        folder = folders.pop()
        descriptor = os.open(root / folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            names = []
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        names.append(entry.name)
                    elif entry.name != _SKIPPED:
                        folders.append(f"{folder}{entry.name}/")
            names = sorted(names if folder else set(names) - _OWN)
            # relative to an open folder: half the time of a whole path, which the kernel would walk each time
            stats = [os.stat(name, dir_fd=descriptor, follow_symlinks=False) for name in names]
        finally:
            os.close(descriptor)
        found.paths.extend([folder + name for name in names])
        found.sizes.extend([stat.st_size for stat in stats])
        found.mtimes.extend([stat.st_mtime_ns for stat in stats])
        found.ctimes.extend([stat.st_ctime_ns for stat in stats])
    return found


def record(root: Path) -> str:
    """The text of the list for a folder as it is now."""
    found, known = scan(root), _records(root)
    lines = [found.digest()]
    for path, size, mtime in zip(found.paths, found.sizes, found.mtimes):
        rows = known.get(path, [])
        trusted = [_hex(digest) for digest, length in rows if length == size] if size > _BIG else []
        lines.append(f"{size} {mtime} {trusted[0] if trusted else hash_of(root / path)} {path}")
    return "\n".join([*lines, ""])


def compare(root: Path, deep: bool = False) -> dict[str, Any]:
    """What is not as it was built: `basis` (`list`, `records`), `count`, and `wrong`: path -> how, of the first.

    + deep: read every file
    """
    text = _read(root / LIST)
    wrong = _by_list(root, text, deep) if text is not None else _by_records(root, deep)
    shown = dict(sorted(wrong.items())[:SHOWN])
    return {"basis": "records" if text is None else "list", "count": len(wrong), "wrong": shown}


def hash_of(path: Path) -> str:
    """SHA-256 of a file, of a link's target; `absent`."""
    try:
        if path.is_symlink():
            return hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        total = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                total.update(block)
        return total.hexdigest()
    except OSError:
        return "absent"


def _by_list(root: Path, text: str, deep: bool) -> dict[str, str]:
    now = scan(root)
    first, _, rest = text.partition("\n")
    if first == now.digest() and not deep:
        return {}
    there = {path: (size, mtime) for path, size, mtime in zip(now.paths, now.sizes, now.mtimes)}
    wrong: dict[str, str] = {}
    listed = set()
    for line in rest.splitlines():
        fields = line.split(" ", 3)
        if len(fields) != 4 or not (fields[0] + fields[1]).isdigit():
            return {**wrong, LIST: "not readable"}
        size, mtime, digest, path = fields
        listed.add(path)
        if path not in there:
            wrong[path] = "missing"
            continue
        size_now, mtime_now = there[path]
        if size_now != int(size):
            wrong[path] = _of_another_size(size_now, int(size))
        elif (deep or mtime_now != int(mtime)) and hash_of(root / path) != digest:
            wrong[path] = "another content"
    wrong.update({path: "new" for path in there if path not in listed and path.endswith(_CODE)})
    return wrong


def _by_records(root: Path, deep: bool) -> dict[str, str]:
    now, known = scan(root), _records(root)
    built_ns = _changed_ns(root / "gpubox.json")
    later = {path for path, ctime in zip(now.paths, now.ctimes) if ctime > built_ns}
    restored = len(later) > _RESTORED and not deep
    patched = {path.partition(_PATCHED)[0] for path in now.paths if _PATCHED in path}
    sizes = dict(zip(now.paths, now.sizes))
    wrong: dict[str, str] = {}
    for path, rows in known.items():
        if path in patched or _SKIPPED in path:
            continue
        if path not in sizes:
            # a record may name what was never there; what was taken away changed a folder
            folder = next(above for above in (root / path).parents if above.is_dir() or above == root)
            if _changed_ns(folder) > built_ns:
                wrong[path] = "missing"
            continue
        fitting = [digest for digest, length in rows if length == sizes[path]]
        if path not in later and not (deep and fitting):
            continue
        if not fitting:
            if not restored or sizes[path] == 0:
                wrong[path] = _of_another_size(sizes[path], rows[0][1])
        elif not restored and hash_of(root / path) not in map(_hex, fitting):
            wrong[path] = "another content"
    return wrong


def _records(root: Path) -> dict[str, list[tuple[str, int]]]:
    """Path -> (SHA-256 as it stands there, size) by each package that brought a file of that name; none without."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in root.glob("lib/python3.*/site-packages/*.dist-info/RECORD"):
        site = path.parent.parent.relative_to(root).as_posix()
        for row in csv.reader((_read(path) or "").splitlines()):
            if len(row) != 3 or not row[1].startswith("sha256=") or not row[2].isdigit():
                continue
            name = f"{site}/{row[0]}"
            name = posixpath.normpath(name) if ".." in name else name
            found.setdefault(name, []).append((row[1], int(row[2])))
    return found


def _hex(digest: str) -> str:
    """Out of a record's form: sha256=, then base64 for addresses without its padding."""
    return base64.urlsafe_b64decode(digest.partition("=")[2] + "=").hex()


def _of_another_size(now: int, then: int) -> str:
    return "emptied" if now == 0 else f"{now} bytes, not {then}"


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return None
