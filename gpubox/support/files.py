"""Write files of this machine whole or not at all, and say early when one cannot be written."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpubox.support.errors import GpuboxError

_NEEDED = "room on the disk and the right to write there"


def write(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Write beside, sync, rename, sync the folder: whatever happens, there is the old file or the whole new one.

    + mode: None: that of the file that is replaced; of a new one, what the umask says

    A link stays, and what it leads to is replaced. Error: it cannot be written; what was there is untouched.
    """
    target = Path(os.path.realpath(path))
    data = content.encode() if isinstance(content, str) else content
    with writing(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".gpubox-new")
        beside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), _mode(target) if mode is None else mode)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        _sync(target.parent)


def make_folder(path: Path, mode: int = 0o755) -> None:
    """The folder, with those above it. Error: it cannot be made, or something else lies there."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True, mode=mode)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system refuses inside the block becomes an error that names `path`."""
    try:
        yield
    except OSError as error:
        raise GpuboxError(f"{path} cannot be written: {error.strerror or error}", _NEEDED) from error


def check_file(path: Path, what: str = "", makes_folders: bool = False) -> None:
    """Error when a file cannot be written at `path`; nothing is written. For before long work.

    + what: names the path in errors, as `--output`
    + makes_folders: its folder will be made where it is not there
    """
    name = f"{what} {path}".strip()
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise GpuboxError(f"{name} is a folder", "the path of a file")
    if target.exists() and not target.is_file():
        raise GpuboxError(f"{name} is no plain file", "the path of a file")
    if makes_folders:
        check_folder(target.parent, name)
        return
    if not target.parent.is_dir():
        raise GpuboxError(
            f"{name}: there is no folder {target.parent}", "a folder that is there", f"mkdir -p {path.parent}"
        )
    _check_folder(target.parent, name)


def check_folder(path: Path, what: str = "") -> None:
    """Error when a folder at `path` cannot be made or written into; nothing is made. `what` as above."""
    name = f"{what} {path}".strip()
    there = Path(os.path.realpath(path))
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        raise GpuboxError(f"{name}: {there} is no folder", "the path of a folder")
    _check_folder(there, name)


def _check_folder(folder: Path, name: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise GpuboxError(f"{name} cannot be written: no right to write into {folder}", _NEEDED)
    about = os.statvfs(folder)
    if about.f_blocks and not about.f_bavail and os.geteuid() != 0:
        raise GpuboxError(f"{name} cannot be written: no space left in {folder}", _NEEDED)


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(folder: Path) -> None:
    """So that the rename survives a power cut, too. Some file systems cannot: the file itself is safe there."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
