"""Say what a venv holds, as one line of JSON. Runs on the box, with the venv's own Python: standard library only.

    python -I -S -c SCRIPT VENV          look
    python -I -S -c SCRIPT VENV record   remember the packages' metadata as it is now, then look

Reads the folders NAME-VERSION.dist-info alone (about a thousand small files), never the packages: 0.1 s for 110.
"""

import hashlib
import json
import os
import platform
import sys
from pathlib import Path

MARKER = "gpubox.json"
"""In the venv: says that gpubox made it, and holds a digest of each package's metadata as it was installed."""


def look(venv: Path) -> dict[str, object]:
    """What the venv holds; `changed` are folders whose files are not those that were recorded."""
    digests = _digests(venv)
    config, recorded = _recorded(venv)
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "folders": sorted(digests),
        "changed": sorted(name for name, digest in digests.items() if recorded.get(name) != digest),
        "config_changed": config != _digest([venv / "pyvenv.cfg"]),
    }


def record(venv: Path) -> None:
    """Remember the present state in the marker: written beside, synced, renamed."""
    state = {"made_by": "gpubox", "config": _digest([venv / "pyvenv.cfg"]), "folders": _digests(venv)}
    beside = venv / (MARKER + ".new")
    with beside.open("w") as file:
        json.dump(state, file, indent=0)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(venv / MARKER)


def _digests(venv: Path) -> dict[str, str]:
    folders = venv.glob("lib/python3.*/site-packages/*.dist-info")
    return {folder.name: _digest(sorted(p for p in folder.rglob("*") if p.is_file())) for folder in folders}


def _digest(files: list[Path]) -> str:
    """Of names and contents; a file that is not there counts as such."""
    total = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b"absent"
        total.update(f"{file.name}:{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def _recorded(venv: Path) -> tuple[str, dict[str, str]]:
    """Digests of pyvenv.cfg and of each folder out of the marker; one that cannot be read vouches for nothing."""
    try:
        state = json.loads((venv / MARKER).read_text())
        return str(state["config"]), dict(state["folders"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


if __name__ == "__main__":
    if sys.argv[2:] == ["record"]:
        record(Path(sys.argv[1]))
    print(json.dumps(look(Path(sys.argv[1]))))
