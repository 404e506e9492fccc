"""Run one script on a host with the system's own ssh, with the same data as pyinfra: a round trip without pyinfra."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from gpubox.support.errors import CannotTellError, GpuboxError

CONNECT_TIMEOUT_S = 10
_UNREACHED = 255
"""ssh's own exit code when it did not get as far as the command."""
_CAUSES = {
    "Host key verification failed": (
        "the host key that is known",
        "was the machine installed anew? then ssh-keygen -R {host}; else find out who answers there",
    ),
    "Permission denied": (
        "a login by key",
        "ssh-copy-id {login}, or name another user or key; ssh {login} must ask nothing",
    ),
    "": ("a host that answers ssh", "is it up, is this its address and port, is a firewall between? try ssh {login}"),
}
"""What ssh says in its last lines -> what is needed, what to do; the last one for everything else."""
_NO_ROOT = "root itself, or sudo without a password: in /etc/sudoers.d, USER ALL=(ALL) NOPASSWD: ALL"


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
    said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    if done.returncode == _UNREACHED:
        raise _unreached(address, connection, " / ".join(said[-2:]) or "ssh failed")
    if done.returncode != 0:
        told = " / ".join(said[-3:])
        raise CannotTellError(f"{address}: exit code {done.returncode}: {told}", "a shell as root there", _NO_ROOT)
    return done.stdout.decode(errors="surrogateescape")


def _unreached(address: str, connection: Mapping[str, Any], said: str) -> CannotTellError:
    needed, todo = next(cause for text, cause in _CAUSES.items() if text in said)
    port, key, known = (connection.get(name) for name in ("ssh_port", "ssh_key", "ssh_known_hosts_file"))
    login = [*(["-p", str(port)] if port else []), *(["-i", str(key)] if key else []), command(address, connection)[-1]]
    host = [f"[{address}]:{port}" if port else address, *(["-f", str(known)] if known else [])]
    where = f"{address} port {port}" if port else address
    return CannotTellError(f"{where}: {said}", needed, todo.format(login=shlex.join(login), host=shlex.join(host)))
