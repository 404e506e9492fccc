"""Write files of the lab whole or not at all."""

import os
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o644) -> bool:
    """Write a file beside and rename it into place; whether the content or the mode was different before."""
    if path.is_file() and path.read_text() == text and path.stat().st_mode & 0o7777 == mode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    beside.chmod(mode)
    beside.rename(path)
    return True


def overwrite(path: Path, text: str) -> bool:
    """Write into the same inode: the file is bind-mounted into running boxes, which would not see a rename."""
    if path.is_file() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+" if path.exists() else "w") as out:
        out.write(text)
        out.truncate()
    return True
