"""`gpubox init`: the folder that a person's boxes live in, made whole or not at all."""

import os
import shutil
import tempfile
from pathlib import Path

from gpubox.support import paths
from gpubox.support.errors import GpuboxError

_SHOWN = 6
"""Names of what is there already that are told."""
_RENAMED = {"gitignore": ".gitignore"}
"""Its own name would count for this repository."""


def texts() -> dict[str, str]:
    """Path in the new folder -> text: the files of templates/project, and the shipped group data."""
    template = paths.templates() / "project"
    found = {path.relative_to(template).as_posix(): path.read_text() for path in _files(template)}
    for name, shown in _RENAMED.items():
        found[shown] = found.pop(name)
    group_data = paths.root() / "group_data"
    found.update({f"group_data/{path.name}": path.read_text() for path in _files(group_data)})
    return dict(sorted(found.items()))


def create(folder: Path) -> list[str]:
    """Lay the project out; the paths written. `folder` is made, or is there and empty.

    The files are written and synced beside their place and then renamed: a run that is cut off leaves nothing that
    looks like a project. Errors: something is there; the folder cannot be made or written.
    """
    _refuse(folder)
    wanted = texts()
    try:
        if folder.is_dir():
            _fill(folder, wanted)
        else:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _make(folder, wanted)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise GpuboxError(f"{folder} cannot be made: {reason}", "a folder that you may write to") from error
    return list(wanted)


def _refuse(folder: Path) -> None:
    try:
        if folder.is_symlink() and not folder.exists():
            raise GpuboxError(f"{folder} is a link that leads nowhere", "a new or an empty folder")
        if folder.exists() and not folder.is_dir():
            raise GpuboxError(f"{folder} is a file", "a new or an empty folder")
        above = next(path for path in folder.absolute().parents if path.exists())
        if not above.is_dir():
            raise GpuboxError(f"{above} is a file", "a folder to make the new one in")
        there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise GpuboxError(f"{folder} cannot be looked at: {reason}", "a folder that you may write to") from error
    if there:
        more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
        listed = ", ".join(there[:_SHOWN])
        raise GpuboxError(f"{folder} is not empty: {listed}{more}", "a new or an empty folder", "choose another name")


def _make(folder: Path, wanted: dict[str, str]) -> None:
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:64]}.new-", dir=folder.parent))
    try:
        _write_all(beside, wanted)
        beside.chmod(0o755)  # mkdtemp's own is for its owner alone
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _fill(folder: Path, wanted: dict[str, str]) -> None:
    """Into an empty folder that stays the same one, for somebody may stand in it."""
    inside = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    moved: list[Path] = []
    try:
        _write_all(inside, wanted)
        for entry in sorted(inside.iterdir()):
            moved.append(entry.rename(folder / entry.name))
    except BaseException:
        for entry in moved:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        raise
    finally:
        shutil.rmtree(inside, ignore_errors=True)


def _write_all(folder: Path, wanted: dict[str, str]) -> None:
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
