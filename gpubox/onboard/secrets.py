"""Fetch a secret of a running server into a file of this machine that only its owner may read.

It passes through ssh and memory only: no command line, no log, no diff holds it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubox.onboard.files import Change
from gpubox.support import payload, ssh
from gpubox.support.errors import CannotTellError, GpuboxError


def folder() -> Path:
    """Where this machine keeps them: XDG_CONFIG_HOME/gpubox/secrets, outside of the repository."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "gpubox" / "secrets"


def path(host: str, kind: str) -> Path:
    """The file of a host's secret. `kind`: api-key or hub-token."""
    return folder() / f"{host}.{kind}"


def fetch(address: str, connection: Mapping[str, Any], host: str, pid: int, variable: str) -> list[Change]:
    """The files to write: the API key of process `pid`, and the hub's token in its environment variable `variable`.

    Errors: the process ended meanwhile; a file of that name holds another secret.
    """
    asked = json.dumps({"pid": pid, "variable": variable})
    sudo = ["sudo", "-n"] if connection.get("_sudo") else []
    words = [*sudo, *payload.words("server_secrets", flags=payload.BARE)]
    told = _secrets(ssh.send(address, connection, words, asked.encode(), 60), address)
    changes = [Change(path(host, kind), f"{secret}\n", 0o600, secret=True) for kind, secret in told.items() if secret]
    for change in changes:
        if change.before not in {"", change.text}:
            raise GpuboxError(
                f"{change.path} holds another secret than the running server has",
                "the same, or no such file",
                f"move {change.path} away, and run again",
            )
    return changes


def _secrets(said: str, address: str) -> dict[str, str]:
    """What the script said, which no error may show."""
    try:
        found = {str(kind): str(secret) for kind, secret in json.loads(said).items()}
    except (ValueError, AttributeError):
        raise CannotTellError(
            f"{address}: what was to be the secrets is no JSON object", "a shell that prints nothing"
        ) from None
    return found
