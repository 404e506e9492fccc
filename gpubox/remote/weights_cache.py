"""What lies of a model in the hub's cache on the box, against the hub's own list of its files.

Complete: every file of the pinned revision lies there with the size that the hub gives, every shard that the index
names is among them, and no `.incomplete` is left of them. The hub's own `hf download` can end well without that
(huggingface_hub#4223).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubox.remote import files


@dataclass(frozen=True)
class Arguments:
    """What to have, and where."""

    repository: str
    """As `organisation/name`."""
    revision: str
    """Commit, tag or branch; a commit stays what it is."""
    cache: str = ""
    """Folder of the hub's cache; empty: that of root, ~/.cache/huggingface/hub."""
    token_file: str | None = None
    """A file that only its owner may read and that holds nothing but the token; None: ask without one."""
    endpoint: str | None = None
    """The hub; None: huggingface.co."""
    attempts: int = 6
    pause_s: float = 5
    """Before the second attempt; doubled for each one after it. A longer Retry-After of the hub wins."""
    room: float = 1.05
    """Free space that is needed, as a multiple of the bytes that are still to come."""

    @property
    def storage(self) -> Path:
        """Folder of this model in the cache."""
        cache = Path(self.cache) if self.cache else Path.home() / ".cache/huggingface/hub"
        return cache / f"models--{self.repository.replace('/', '--')}"


@dataclass(frozen=True)
class Manifest:
    """What the hub says of one commit."""

    commit: str
    sizes: dict[str, int]
    """File -> bytes."""
    blobs: dict[str, str]
    """File -> its name below blobs/."""

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes.values())


def look(arguments: Arguments) -> dict[str, Any]:
    """The final event without asking the hub: by the manifest that a fetch left."""
    commit = _known_commit(arguments)
    manifest = _read_manifest(arguments, commit) if commit else None
    if manifest is None:
        return {"event": "incomplete", "lacks": ["(never fetched by gpubox)"]}
    lacks = lacking(arguments, manifest)
    if lacks:
        return {"event": "incomplete", "lacks": lacks[:20], "revision": manifest.commit}
    path = str(arguments.storage / "snapshots" / manifest.commit)
    return {"event": "complete", "path": path, "revision": manifest.commit, "bytes": manifest.total}


def lacking(arguments: Arguments, manifest: Manifest) -> list[str]:
    """What is missing, with the reason, of a commit in the cache."""
    snapshot = arguments.storage / "snapshots" / manifest.commit
    lacks = []
    for name, size in sorted(manifest.sizes.items()):
        found = (snapshot / name).stat().st_size if (snapshot / name).exists() else None
        if found != size:
            lacks.append(f"{name} ({'not there' if found is None else f'{found} of {size} bytes'})")
    lacks += [
        f"{name} (the index names it, the repository lacks it)" for name in _indexed(snapshot) - set(manifest.sizes)
    ]
    return lacks + [f"{path.name} (half fetched)" for path in half(arguments, manifest)]


def fetched(arguments: Arguments, manifest: Manifest) -> int:
    """Bytes that are there of the wanted files, whole or half."""
    names = set(manifest.blobs.values())
    whole = [arguments.storage / "blobs" / name for name in names]
    return sum(path.stat().st_size for path in [*whole, *half(arguments, manifest)] if path.exists())


def half(arguments: Arguments, manifest: Manifest) -> list[Path]:
    """`BLOB.incomplete`, and in newer versions of the library `BLOB.SOMETHING.incomplete`."""
    names = set(manifest.blobs.values())
    return [p for p in sorted((arguments.storage / "blobs").glob("*.incomplete")) if p.name.partition(".")[0] in names]


def damaged(arguments: Arguments, manifest: Manifest) -> list[Path]:
    """Blobs of the wrong size: the library takes a file that is there for whole."""
    blobs = {manifest.blobs[name]: size for name, size in manifest.sizes.items()}
    paths = [(arguments.storage / "blobs" / name, size) for name, size in blobs.items()]
    return [path for path, size in paths if path.exists() and path.stat().st_size != size]


def write_manifest(arguments: Arguments, manifest: Manifest) -> None:
    """Keep the hub's list beside the model, for every later look."""
    if arguments.revision != manifest.commit:  # the library writes a reference only for what it was asked by name
        reference = arguments.storage / "refs" / arguments.revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        files.write(reference, manifest.commit.encode())
    content = {"commit": manifest.commit, "sizes": manifest.sizes, "blobs": manifest.blobs}
    files.write(_manifest_path(arguments, manifest.commit), json.dumps(content).encode())


def _indexed(snapshot: Path) -> set[str]:
    found: set[str] = set()
    for index in snapshot.glob("*.index.json"):
        found |= set(json.loads(index.read_text()).get("weight_map", {}).values())
    return found


def _known_commit(arguments: Arguments) -> str | None:
    if re.fullmatch("[0-9a-f]{40}", arguments.revision):
        return arguments.revision
    reference = arguments.storage / "refs" / arguments.revision
    return reference.read_text().strip() if reference.is_file() else None


def _manifest_path(arguments: Arguments, commit: str) -> Path:
    return arguments.storage / f"gpubox-{commit}.json"


def _read_manifest(arguments: Arguments, commit: str) -> Manifest | None:
    path = _manifest_path(arguments, commit)
    return Manifest(**json.loads(path.read_text())) if path.is_file() else None
