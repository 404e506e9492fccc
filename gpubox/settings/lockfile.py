"""Read lock files: nothing but `NAME==VERSION` with SHA-256 hashes, below a line that says what they are made from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from gpubox.support.errors import GpuboxError

_PIN = re.compile(
    r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)==(?P<version>[a-z0-9][a-z0-9.+!]*)((?: --hash=sha256:[0-9a-f]{64})+)"
)


@dataclass(frozen=True)
class Pin:
    """One locked package."""

    name: str
    """As PyPI normalises it: lower case, dashes."""
    version: str
    hashes: frozenset[str]
    """SHA-256 of every file that may be installed for it, in hexadecimal digits."""


def read(path: Path) -> list[Pin]:
    """The pins of a lock. Errors: no such file; anything that is not a pin with hashes (a path, a link, a marker)."""
    if not path.is_file():
        raise GpuboxError(f"no lock {path}", "a lock with hashes", f"gpubox lock {path.parent.name}")
    return parse(path.read_text(), str(path))


def parse(text: str, where: str) -> list[Pin]:
    """The pins in a lock's text; `where` it came from is for errors."""
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    entries = (" ".join(entry.split()) for entry in bare.replace("\\\n", " ").splitlines())
    return [_pin(entry, where) for entry in entries if entry]


def stamp(inputs: Mapping[str, str], **settings: object) -> str:
    """The first line of a lock: which files it was made from, and a digest of their text and of the settings.

    + inputs: name -> text
    + settings: what else decides the result, as the Python version
    """
    digest = sha256(repr((sorted(inputs.items()), sorted(settings.items()))).encode()).hexdigest()
    return f"# Made by `gpubox lock` from {', '.join(inputs)} ({digest[:16]}); edit those, not this."


def _pin(entry: str, where: str) -> Pin:
    match = _PIN.fullmatch(entry)
    if match is None:
        raise GpuboxError(f"{where} holds {entry[:100]!r}", "only NAME==VERSION with --hash=sha256:...", "gpubox lock")
    return Pin(match["name"], match["version"], frozenset(re.findall(r"sha256:([0-9a-f]{64})", entry)))
