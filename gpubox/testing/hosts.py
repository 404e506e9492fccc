"""testinfra's words for a host of the inventory: it knows URLs, not names."""

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode


def spec(name: str, connection: Mapping[str, Any]) -> str:
    """A testinfra host specification with the same address, user, port, key and known hosts as the deploy uses."""
    folder = _folder()
    lines = [f"Host {name}", f"  HostName {connection.get('ssh_hostname', name)}"]
    for key, option in {"ssh_port": "Port", "ssh_user": "User", "ssh_known_hosts_file": "UserKnownHostsFile"}.items():
        if key in connection:
            lines.append(f"  {option} {connection[key]}")
    if "ssh_key" in connection:
        lines += [f"  IdentityFile {connection['ssh_key']}", "  IdentitiesOnly yes"]
    file = folder / f"{name}.ssh-config"
    file.write_text("\n".join([*lines, "  BatchMode yes", f"  ControlPath {folder}/%C", ""]))
    sudo = {"sudo": "true"} if connection.get("_sudo") else {}
    return f"ssh://{name}?{urlencode({'ssh_config': str(file), **sudo})}"


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gpubox-tests-"))
