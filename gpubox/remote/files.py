"""Write files so that a run that is killed at any line leaves the old one or the new one whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

UNFINISHED = ".gpubox-new"
"""End of the name of what is being written; a leftover is of no use to anybody."""


def write(path: Path, content: bytes, mode: int = 0o644, like: Path | None = None) -> None:
    """Beside, synced, renamed.

    + mode: of the new file
    + like: a file whose mode and owner it gets instead
    """
    beside = beside_of(path)
    beside.unlink(missing_ok=True)
    beside.touch(0o600, exist_ok=False)
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        if like is None:
            beside.chmod(mode)
        else:
            about = like.stat()
            beside.chmod(about.st_mode & 0o7777)
            os.chown(beside, about.st_uid, about.st_gid)
        os.fsync(file.fileno())
    beside.replace(path)
    _sync_folder(path.parent)


def link(path: Path, target: str) -> None:
    """A symbolic link with this target, in place of whatever link is there. A link that is right is left alone."""
    if path.is_symlink() and str(path.readlink()) == target:
        return
    beside = beside_of(path)
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(path)
    _sync_folder(path.parent)


def read_json(path: Path, otherwise: Any) -> Any:
    """What a file says; `otherwise`: it is not there, or damaged."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return otherwise


def beside_of(path: Path) -> Path:
    """Where a file is written before it gets its name."""
    return path.with_name(f".{path.name}{UNFINISHED}")


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
