"""Run one script on a host with the system's own ssh, with the same data as pyinfra: a round trip without pyinfra."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from gpubox.errors import CannotTellError, GpuboxError

CONNECT_TIMEOUT_S = 10
_UNREACHED = 255
"""ssh's own exit code when it did not get as far as the command."""


def command(address: str, connection: Mapping[str, Any]) -> list[str]:
    """The words that run what follows them on the host; `connection` is pyinfra's data: ssh_user, ssh_key, _sudo, ...

    A host key that was never seen is accepted and remembered, as pyinfra does; a changed one is refused.
    Error: an address that would be an option.
    """
    if not address or address.startswith("-"):
        raise GpuboxError(f"the address {address!r}", "a host name or an IP address")
    user = f"{connection['ssh_user']}@" if connection.get("ssh_user") else ""
    checking = connection.get("ssh_strict_host_key_checking", "accept-new")
    words = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}", "-o", "LogLevel=ERROR"]
    words += ["-o", f"StrictHostKeyChecking={checking}", "-o", "ServerAliveInterval=15"]
    if known := connection.get("ssh_known_hosts_file"):
        words += ["-o", f"UserKnownHostsFile={known}"]
    if port := connection.get("ssh_port"):
        words += ["-p", str(port)]
    if key := connection.get("ssh_key"):
        words += ["-i", str(key), "-o", "IdentitiesOnly=yes"]
    return [*words, "--", f"{user}{address}"]


def run(address: str, connection: Mapping[str, Any], script: str, timeout_s: float = 120) -> str:
    """What a shell script printed that ran on the host as root; the script goes through stdin, not the command line.

    Errors: cannot tell, when the host is not reached, it takes too long, or the script does not end with 0.
    """
    shell = ["sudo", "-n", "/bin/sh", "-s"] if connection.get("_sudo") else ["/bin/sh", "-s"]
    whole = f"{{\n{script}\n}} </dev/null\n"  # read to its end before it runs: nothing in it can eat the rest
    return send(address, connection, shell, whole.encode(), timeout_s)


def send(address: str, connection: Mapping[str, Any], words: Sequence[str], data: bytes, timeout_s: float) -> str:
    """What a command printed on the host that got `data` on its stdin. Errors as for `run`."""
    argv = [*command(address, connection), shlex.join(words)]
    try:
        done = subprocess.run(argv, input=data, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise CannotTellError(f"{address}: no answer within {timeout_s:.0f} s", "a host that answers") from None
    except FileNotFoundError:
        raise CannotTellError("there is no ssh on this machine", "an ssh client") from None
    said = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
    if done.returncode == _UNREACHED:
        login = f"ssh {address}, by hand, must log in without a question: key, user, host key"
        raise CannotTellError(f"{address}: {' / '.join(said) or 'ssh failed'}", "a login by key", login)
    if done.returncode != 0:
        raise CannotTellError(f"{address}: exit code {done.returncode}: {' / '.join(said)}", "a shell as root there")
    return done.stdout.decode(errors="surrogateescape")
