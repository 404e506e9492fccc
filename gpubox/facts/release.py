"""Commands for gpubox/remote/switch.py on the box, and what it says of the releases there."""

import getpass
import json
import socket
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api import StringCommand

from gpubox.remote import switch
from gpubox.remote.effective import Effective
from gpubox.server.release import ROOT
from gpubox.support import payload
from gpubox.support.errors import GpuboxError
from gpubox.support.reading import reader

STAMP = switch.STAMP
"""Environment variable of the service that names the release that it was started from."""


@dataclass(frozen=True)
class Releases:
    """What is there, as gpubox.remote.switch.state says it."""

    current: str | None = None
    previous: str | None = None
    unit: str | None = None
    """The release whose unit lies where systemd looks."""
    runs: str | None = None
    """The release that the main process was started from, with the venv that lies there now."""
    linked: bool = False
    """The link to the venv is that of the current release."""
    releases: tuple[dict[str, Any], ...] = ()
    """Each with digest, venv, revision, made_from, files (digests), argv, environment (lines, secrets taken out), probe
    (its arguments), verified (time or None), by (who made it current last, as `user@machine`, or None)."""
    superfluous: tuple[str, ...] = ()
    """Folders of releases and venvs that nothing runs from and nothing goes back to, as a refused run leaves them."""

    effective: Effective = field(default_factory=Effective)
    """What systemd really has of the unit, and what its process really is, against the current release."""
    loose: tuple[str, ...] = ()
    """Folders of gpubox's own that somebody else owns or may write."""

    def named(self, name: str) -> str:
        """The digest that `current`, `previous` or the beginning of a digest means. Error: none, or several."""
        links = {"current": self.current, "previous": self.previous}
        found = [r["digest"] for r in self.releases if r["digest"] == links.get(name) or r["digest"].startswith(name)]
        if len(found) != 1:
            known = ", ".join(release["digest"] for release in self.releases) or "none there"
            raise GpuboxError(f"{name!r} names {len(found)} releases", f"current, previous, or one of: {known}")
        return str(found[0])

    def one(self, digest: str) -> dict[str, Any]:
        """The release `digest`; empty: it is not there."""
        return next((release for release in self.releases if release["digest"] == digest), {})

    def is_verified(self, digest: str) -> bool:
        """Whether it is current and has answered since it became so."""
        return self.current == digest and bool(self.one(digest).get("verified"))

    def serves(self, digest: str) -> bool:
        """Whether it is current in every respect, and runs, with nothing beside it that changes it."""
        theirs = self.effective.aside or self.effective.differs or self.loose
        against = any(one["severe"] for one in self.effective.shared)
        return self.current == self.unit == self.runs == digest and self.linked and not theirs and not against


def command(action: str, arguments: dict[str, Any]) -> StringCommand:
    """The shell command that does `action` of switch.py; nothing is left on the box.

    + arguments: of gpubox.remote.switch.Arguments
    """
    return StringCommand(payload.shell("switch", action, given=arguments))


def main_process(digest: str) -> dict[str, str]:
    """Arguments of the probe that say what the main process must be: no part of a release's own, which are kept."""
    return {"argv_file": f"{ROOT}/releases/{digest}/argv.json"}


def somebody() -> str:
    """Who runs this program and where, as `user@machine`."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def look(arguments: dict[str, Any]) -> StringCommand:
    """The shell command that says what is there, also on a box that has no Python yet."""
    return StringCommand(f"if test -d {ROOT}/releases; then", command("state", arguments), "; else echo '{}'; fi")


@reader("the releases of the box")
def parse(line: str) -> Releases:
    """What switch.py printed. Error: CannotTellError for anything else."""
    found = json.loads(line)
    lists = {name: tuple(found.get(name, ())) for name in ("releases", "superfluous", "loose")}
    if any(not isinstance(one, dict) or "digest" not in one for one in lists["releases"]):
        raise ValueError("a release without a digest")
    return Releases(**{**found, **lists, "effective": Effective(**found.get("effective", {}))})
