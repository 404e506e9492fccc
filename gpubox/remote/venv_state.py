"""Say what a venv holds, as one line of JSON. Runs on the box, with the venv's own Python. Its words:

    VENV                     look
    VENV made                remember pyvenv.cfg as it is now
    VENV installed NAME...   remember the metadata of these packages as it is now
    VENV finished            remember every file (gpubox.remote.tree): nothing is changed in it from now on
    VENV deep                look, and read every file

While it is built, what is remembered is only what was just written: to remember all would vouch for damage that nobody
has looked at yet. From when it is finished all files count, and one pass tells whether one of them was changed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from pathlib import Path

from gpubox.remote import files, tree

MARKER = "gpubox.json"
"""In the venv: says that gpubox made it, and holds a digest of each package's metadata as it was installed."""


def look(venv: Path, deep: bool = False) -> dict[str, object]:
    """What the venv holds; `changed` are folders whose files are not those that were recorded; `tree` is what
    gpubox.remote.tree says of all files."""
    config, recorded = recorded_in(venv)
    folders = [folder.name for folder in _folders(venv)]
    if (venv / tree.LIST).is_file():  # its files say more than these digests, in less time
        changed = [name for name in folders if name not in recorded]
        config_changed = config == ""
    else:
        digests = _digests(venv)
        changed = [name for name, digest in digests.items() if recorded.get(name) != digest]
        config_changed = config != _digest([venv / "pyvenv.cfg"])
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "folders": sorted(folders),
        "changed": sorted(changed),
        "config_changed": config_changed,
        "tree": tree.compare(venv, deep),
    }


def finished(venv: Path) -> None:
    """Remember every file as it is now."""
    (venv / tree.LIST).unlink(missing_ok=True)
    files.write(venv / tree.LIST, tree.record(venv).encode(errors="surrogateescape"))


def made(venv: Path) -> None:
    """Remember pyvenv.cfg; what is remembered of packages stays."""
    _record(venv, _digest([venv / "pyvenv.cfg"]), recorded_in(venv)[1])


def installed(venv: Path, names: list[str]) -> None:
    """Remember the metadata of the packages `names`, and forget that of packages that are gone."""
    config, folders = recorded_in(venv)
    digests = _digests(venv)
    fresh = {folder: digest for folder, digest in digests.items() if name_of(folder) in names}
    _record(venv, config, {**{f: d for f, d in folders.items() if f in digests}, **fresh})


def name_of(folder: str) -> str:
    """Name of the package whose metadata lies in NAME-VERSION.dist-info, as PyPI normalises it."""
    return folder.partition("-")[0].replace("_", "-").replace(".", "-").lower()


def recorded_in(venv: Path) -> tuple[str, dict[str, str]]:
    """Digests of pyvenv.cfg and of each folder out of the marker; one that cannot be read vouches for nothing."""
    try:
        state = json.loads((venv / MARKER).read_text())
        return str(state["config"]), dict(state["folders"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


def main(words: list[str]) -> int:
    """Look or remember, as the words say; returns the exit code."""
    folder, action, names = Path(words[0]), words[1:2], words[2:]
    if action in ([], ["deep"]) and not names:
        print(json.dumps(look(folder, deep=bool(action))))
    elif action == ["finished"] and not names:
        finished(folder)
    elif action == ["made"] and not names:
        made(folder)
    elif action == ["installed"]:
        installed(folder, names)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


def _record(venv: Path, config: str, folders: dict[str, str]) -> None:
    state = {"made_by": "gpubox", "config": config, "folders": folders}
    files.write(venv / MARKER, json.dumps(state, indent=0).encode())


def _folders(venv: Path) -> list[Path]:
    return list(venv.glob("lib/python3.*/site-packages/*.dist-info"))


def _digests(venv: Path) -> dict[str, str]:
    return {folder.name: _digest(sorted(p for p in folder.rglob("*") if p.is_file())) for folder in _folders(venv)}


def _digest(paths: list[Path]) -> str:
    """Of names and contents; a file that is not there counts as such."""
    total = hashlib.sha256()
    for file in paths:
        content = file.read_bytes() if file.is_file() else b"absent"
        total.update(f"{file.name}:{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()
