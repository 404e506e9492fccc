"""Releases: everything that a service runs from, in one folder named by its digest (no host is touched here).

On the box, below ROOT: `releases/DIGEST/` (what `files` gives), `venvs/DIGEST/`, and the links `current` and
`previous`. `gpubox.remote.switch` is what changes them there.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubox.settings.stack import SourceBuild

ROOT = "/var/lib/gpubox"
HERE = "@RELEASE@"
"""In a release's texts: stands for its own digest, which is known only when they are."""
FOLDER = f"{ROOT}/releases/{HERE}"
"""A release's own folder, as its texts name it."""


@dataclass(frozen=True)
class Release:
    """What a service runs from. Texts name their own files by paths with HERE, never through `current`: what systemd
    has loaded is then of one release, whatever a killed run left behind."""

    argv: list[str]
    unit: str
    """Text of the unit. No part of the digest beyond the rest: what it says about restarts and limits is loaded by
    systemd without a restart of the server."""
    environment: str
    """Text of an EnvironmentFile."""
    venv: str
    """Digest of the venv, as `venv_digest` gives it."""
    api_key: str | None = field(default=None, repr=False)
    """What the server asks its clients for; it gets it from a --config file, off the command line."""
    revision: str | None = None
    """The model's commit on the hub."""
    probe: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of gpubox.remote.probe that tell whether it is ready. No part of the digest."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """For people: profile, stack, lock, patches, version of gpubox. No part of the digest: another name must not
    restart a server, and what is in the venv counts by the venv's digest."""
    process: Sequence[str] = ()
    """Lines of the unit that bind the process (processors, memory nodes, limits): only a start makes them true."""

    @property
    def digest(self) -> str:
        """Its name: 16 hexadecimal digits. What has another one is another process."""
        bound = [list(self.process)] if self.process else []  # releases without keep their names
        return _digest([self.argv, self.environment, self.venv, self.api_key, self.revision, *bound])

    @property
    def path(self) -> str:
        """Its folder on the box."""
        return f"{ROOT}/releases/{self.digest}"

    def here(self, text: str) -> str:
        """`text` with this release's digest in the places where it says HERE."""
        return text.replace(HERE, self.digest)

    def files(self) -> dict[str, bytes]:
        """Its files by name, all for root alone (mode 600). `release.json` comes last: a folder without is none."""
        texts = {
            "unit": self.unit,
            "environment": self.environment,
            "argv.json": json.dumps(self.argv),
            "probe.json": json.dumps(dict(self.probe)),
            **self._key_files(),
        }
        content = {name: self.here(text).encode() for name, text in texts.items()}
        about = {
            "digest": self.digest,
            "venv": self.venv,
            "revision": self.revision,
            "made_from": dict(self.made_from),
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in content.items()},
        }
        return {**content, "release.json": json.dumps(about, indent=1).encode()}

    def _key_files(self) -> dict[str, str]:
        if self.api_key is None:
            return {}
        return {"config.yaml": f"api-key: {json.dumps(self.api_key)}\n", "api-key": f"{self.api_key}\n"}


def venv_digest(locks: Sequence[bytes], python: str, builds: Sequence[SourceBuild], patches: str) -> str:
    """The name of a venv: locks in order, interpreter (as `3.11`), what is built from source, and the digest of the
    source patches (gpubox.server.patches.digest)."""
    return _digest(
        [
            [hashlib.sha256(lock).hexdigest() for lock in locks],
            python,
            [build.model_dump() for build in builds],
            patches,
        ]
    )


def venv_path(digest: str) -> str:
    """Where the venv of that digest lies on the box."""
    return f"{ROOT}/venvs/{digest}"


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
