"""Read every file of what gpubox put on the box, and say what is another than it was. Takes its time, changes nothing.

One JSON object on stdin: `trees` (environments, as gpubox.remote.tree knows them), `own` (folders that only root may
write), `packages` (regular expression of the names of packages that dpkg is to verify). Prints one JSON object: `trees`
(path -> what gpubox.remote.tree says, null: not there), `loose` (paths below `own` that another user owns or may write)
and `packages` (lines of dpkg --verify), each of the last two with its first lines only.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path

from gpubox.remote import command, tree
from gpubox.remote.command import CommandError

SHOWN = 20
_LOCK = ".lock"
"""An empty file that uv leaves in an environment for everybody to lock."""


def main(words: list[str]) -> int:
    """Read, print. It takes no words."""
    asked = json.loads(sys.stdin.read())
    trees = {path: tree.compare(Path(path), deep=True) if Path(path).is_dir() else None for path in asked["trees"]}
    loose = [line for path in asked["own"] for line in loose_below(Path(path))]
    print(json.dumps({"trees": trees, "loose": loose[:SHOWN], "packages": verified(asked["packages"])[:SHOWN]}))
    return 0


def loose_below(root: Path, owner: int | None = None) -> list[str]:
    """Files and folders that another than `owner` (default: who runs this) owns, or that others may write."""
    found, mine = [], os.getuid() if owner is None else owner
    for folder, folders, names in os.walk(root):
        for path in (Path(folder), *(Path(folder) / name for name in (*folders, *names))):
            entry = path.lstat()
            if entry.st_uid != mine:
                found.append(f"{path} is owned by user {entry.st_uid}")
            elif path.name != _LOCK and entry.st_mode & 0o022 and not stat.S_ISLNK(entry.st_mode):
                found.append(f"{path} may be written by others ({entry.st_mode & 0o7777:o})")
    return list(dict.fromkeys(found))


def verified(pattern: str) -> list[str]:
    """What differs of the files of installed packages whose names match, but for settings (conffiles)."""
    try:
        listed = command.output(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}\t${Package}\n"])
        names = [line.split("\t")[1] for line in listed.splitlines() if line.startswith(("ii", "hi"))]
        names = [name for name in names if re.search(pattern, name)]
        said = command.output(["dpkg", "--verify", *names], timeout_s=600, nothing=1) if names else ""
    except CommandError as error:
        return [f"cannot tell: {error}"]
    # dpkg(1): nine letters, then the letter c for a conffile, then the path; or the word missing
    return [line.strip() for line in said.splitlines() if not re.match(r"\S+\s+c\s", line)]
