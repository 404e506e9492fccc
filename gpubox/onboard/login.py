"""How a machine is reached, out of what people type: `[USER@]HOST[:PORT]`, and options for what it does not say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubox.support.errors import GpuboxError

_TYPED = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^@\s:/]+))(?::(?P<port>\d+))?")
_BARE_SIX = re.compile(r"[0-9A-Fa-f.]*(?::[0-9A-Fa-f.]*){2,}")


@dataclass(frozen=True)
class Login:
    """An address, and pyinfra's data for it: ssh_user, ssh_port, ssh_key, ..., _sudo."""

    address: str
    connection: Mapping[str, Any]


def login(typed: str, user: str, port: int | None, files: Mapping[str, str]) -> Login:
    """The login that the words mean; what they say themselves goes before the options.

    + user: other than root: with sudo
    + files: pyinfra's data about keys, where there are any

    Error: the words are no address.
    """
    if _BARE_SIX.fullmatch(typed):
        typed = f"[{typed}]"
    found = _TYPED.fullmatch(typed)
    if found is None or typed.startswith("-") or not 0 < int(found["port"] or 22) < 65536:
        raise GpuboxError(f"the address {typed!r}", "[USER@]HOST[:PORT], as 192.0.2.11 or ops@gpu-a:2222")
    name, at = found["user"] or user, found["port"] or port
    connection = {
        "ssh_user": name,  # always: else ssh takes the name of whoever runs this
        **({"_sudo": True} if name != "root" else {}),
        **({"ssh_port": int(at)} if at else {}),
        **files,
    }
    return Login(found["six"] or found["host"], connection)
