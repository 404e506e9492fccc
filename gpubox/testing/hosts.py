"""testinfra's words for a host of the inventory: it knows URLs, not names."""

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gpubox.support import ssh

_KEYWORDS = {"-p": "Port", "-i": "IdentityFile"}
"""The words of ssh's command line that a configuration file spells in another way; `-o` has the file's own form."""


def spec(name: str, connection: Mapping[str, Any]) -> str:
    """A testinfra host specification with the same address, user, port, key and known hosts as the deploy uses."""
    folder = _folder()
    *options, _, target = ssh.command(str(connection.get("ssh_hostname", name)), connection)
    user, _, address = target.rpartition("@")
    lines = [f"Host {name}", f"  HostName {address}", *([f"  User {user}"] if user else [])]
    pairs = zip(options[1::2], options[2::2], strict=True)
    lines += [f"  {_KEYWORDS[word]} {value}" if word in _KEYWORDS else f"  {value}" for word, value in pairs]
    file = folder / f"{name}.ssh-config"
    file.write_text("\n".join([*lines, f"  ControlPath {folder}/%C", ""]))
    sudo = {"sudo": "true"} if connection.get("_sudo") else {}
    return f"ssh://{name}?{urlencode({'ssh_config': str(file), **sudo})}"


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gpubox-tests-"))
