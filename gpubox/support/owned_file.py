"""Files that gpubox owns whole, and what lies at a path of a host."""

from dataclasses import dataclass
from hashlib import sha256

from typing_extensions import override


@dataclass(frozen=True)
class Entry:
    """What lies at one path."""

    kind: str
    """`file`, `directory`, `link`, `other` or `absent`."""
    mode: str = ""
    """Octal digits, as `644`; empty for links."""
    user: str = ""
    group: str = ""
    sha256: str = ""
    """Of a file's content."""
    target: str = ""
    """Of a link."""


@dataclass(frozen=True)
class OwnedFile:
    """A file with all of its content."""

    path: str
    content: str | bytes
    mode: str = "644"
    """Octal digits. `600` for anything secret: it is then never readable by others, not even while it is written."""
    user: str = "root"
    group: str = "root"

    @property
    def data(self) -> bytes:
        """The content as bytes."""
        return self.content if isinstance(self.content, bytes) else self.content.encode()

    def is_at(self, entry: Entry) -> bool:
        """Whether `entry` is this file."""
        wanted = ("file", self.mode, self.user, self.group, sha256(self.data).hexdigest())
        return (entry.kind, entry.mode, entry.user, entry.group, entry.sha256) == wanted

    @override
    def __repr__(self) -> str:
        """Without the content: it may be secret, and pyinfra prints arguments."""
        return f"OwnedFile({self.path})"
