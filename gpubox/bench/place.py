"""Where the measuring client runs: on a box over ssh, or here."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubox.hosts import Box
from gpubox.support.errors import GpuboxError

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
    """The box, reached by the system's ssh with the inventory's own data, and the service's own venv."""
    sudo = ("sudo", "-n") if box.connection.get("_sudo") else ()
    return Place(box.name, f"{box.settings.venv_path}/bin/python3", (*_ssh(box), *sudo))


def here(python: str) -> Place:
    """This machine."""
    return Place("local", python)


def _ssh(box: Box) -> list[str]:
    connection = box.connection
    user = f"{connection['ssh_user']}@" if connection.get("ssh_user") else ""
    if box.address.startswith("-"):
        raise GpuboxError(f"{box.name} has the address {box.address!r}", "a host name or an address")
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"]
    return ["ssh", *options, *_given(connection), "--", f"{user}{box.address}"]


def _given(connection: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for key, option in {"ssh_key": "-i", "ssh_port": "-p"}.items():
        if connection.get(key):
            words += [option, str(connection[key])]
    known, checking = connection.get("ssh_known_hosts_file"), connection.get("ssh_strict_host_key_checking")
    words += ["-o", f"UserKnownHostsFile={known}"] if known else []
    words += ["-o", f"StrictHostKeyChecking={checking}"] if checking else []
    return words
