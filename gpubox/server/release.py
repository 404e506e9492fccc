"""Releases: everything that a service runs from, in one folder named by its digest (no host is touched here).

On the box, below ROOT: `releases/DIGEST/` (unit, environment, argv.json, config where there is one, release.json),
`venvs/DIGEST/`, and the links `current` and `previous`. `gpubox.server.switch` is what changes them there.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpubox.stack import SourceBuild

ROOT = "/var/lib/gpubox"
HERE = "@RELEASE@"
"""In a release's texts: stands for its own digest, which is known only when they are."""


@dataclass(frozen=True)
class Release:
    """What a service runs from. Texts name their own files by paths with HERE, never through `current`: what systemd
    has loaded is then of one release, whatever a killed run left behind."""

    argv: list[str]
    unit: str
    environment: str
    """Text of an EnvironmentFile."""
    venv: str
    """Digest of the venv, as `venv_digest` gives it."""
    config: str | None = None
    """SGLang's --config file: where secrets are, so that they stay off the command line."""
    revision: str | None = None
    """The model's commit on the hub."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """For people: profile, stack, version of gpubox. No part of the digest: another name must not restart a server."""

    @property
    def digest(self) -> str:
        """Its name: 16 hexadecimal digits."""
        return _digest([self.argv, self.unit, self.environment, self.venv, self.config, self.revision])

    @property
    def path(self) -> str:
        """Its folder on the box."""
        return f"{ROOT}/releases/{self.digest}"

    def files(self) -> dict[str, bytes]:
        """Its files by name; all are for root alone (mode 600). `release.json` holds the SHA-256 of the others."""
        texts = {
            "unit": self.unit,
            "environment": self.environment,
            "argv.json": json.dumps(self.argv),
            **({} if self.config is None else {"config.yaml": self.config}),
        }
        content = {name: text.replace(HERE, self.digest).encode() for name, text in texts.items()}
        about = {
            "digest": self.digest,
            "venv": self.venv,
            "revision": self.revision,
            "made_from": dict(self.made_from),
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in content.items()},
        }
        return {**content, "release.json": json.dumps(about, indent=1).encode()}


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
