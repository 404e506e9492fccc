"""Where the measuring client runs: on a box over ssh, or here."""

import shlex
from dataclasses import dataclass

from gpubox.hosts import Box
from gpubox.support import ssh

RUNS_ON_BOX = "/var/lib/gpubox/runs"
"""Where runs are kept on a box, one folder each."""


@dataclass(frozen=True)
class Place:
    """A machine with a Python that has SGLang."""

    name: str
    """What people call it; never an address in a record."""
    python: str
    """Absolute path of the interpreter there."""
    prefix: tuple[str, ...] = ()
    """What stands before a command to run it there; empty: here."""

    def command(self, words: list[str]) -> list[str]:
        """The argv that runs `words` there."""
        return [*self.prefix, shlex.join(words)] if self.prefix else words


def on_box(box: Box) -> Place:
    """The box, reached as by every command, and the service's own venv. Error: an address that would be an option."""
    sudo = ("sudo", "-n") if box.connection.get("_sudo") else ()
    return Place(box.name, f"{box.settings.venv_path}/bin/python3", (*ssh.command(box.address, box.connection), *sudo))


def here(python: str) -> Place:
    """This machine."""
    return Place("local", python)
