"""LXC as it is used: the outer container through its own lxcpath, the inner ones by commands inside pve01."""

import socket
import time
from collections.abc import Sequence

from gpubox.lab import network, paths, shell
from gpubox.support.errors import GpuboxError

_PVE = network.HYPERVISOR
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SSH_WAIT_S = 60.0


def inside(*argv: str, ok: Sequence[int] = (0,)) -> str:
    """Run a command in pve01 and return its standard output."""
    return shell.run("lxc-attach", *_outer(), "--clear-env", "-v", f"PATH={_PATH}", "--", *argv, ok=ok)


def state(name: str) -> str:
    """LXC's word for the container's state: RUNNING, STOPPED, ...; MISSING where it does not exist."""
    if name == _PVE:
        exists = (paths.hypervisor() / _PVE / "config").exists()
        return shell.run("lxc-info", *_outer(), "-sH").strip() if exists else "MISSING"
    if state(_PVE) != "RUNNING":
        return "STOPPED" if (paths.boxes() / name / "config").exists() else "MISSING"
    return inside("lxc-info", "-n", name, "-sH", ok=(0, 1)).strip() or "MISSING"


def start(name: str) -> None:
    """Start a container; one that starts by itself at this moment is fine."""
    if name == _PVE:
        log = paths.hypervisor() / _PVE / "log"
        shell.run("lxc-start", *_outer(), "-d", "-o", str(log), "-l", "WARN")
    else:
        inside("lxc-start", "-n", name, ok=(0, 1))


def stop(name: str, graceful_s: int = 0) -> None:
    """Stop a container if it runs: asked first for up to `graceful_s` seconds, then killed."""
    how = ("-t", str(graceful_s)) if graceful_s else ("-k",)
    if state(name) in ("STOPPED", "MISSING"):
        return
    if name == _PVE:
        shell.run("lxc-stop", *_outer(), *how)
    else:
        inside("lxc-stop", "-n", name, *how, ok=(0, 2))  # 2: it has stopped meanwhile


def wait_for_ssh(names: Sequence[str]) -> None:
    """Wait until sshd answers on each; one that does not is a GpuboxError with LXC's own state of it."""
    end = time.monotonic() + _SSH_WAIT_S
    for name in names:
        while not ssh_answers(name):
            if time.monotonic() > end:
                raise GpuboxError(
                    f"{name} does not answer on port 22 after {_SSH_WAIT_S:.0f} s; LXC says {state(name)}",
                    "a booted container",
                    f"gpubox lab reset {name}; its log: {paths.hypervisor() / _PVE / 'log'}, or /var/log/lxc in {_PVE}",
                )
            time.sleep(0.1)


def ssh_answers(name: str) -> bool:
    """Whether an ssh server greets on the container's address."""
    try:
        with socket.create_connection((network.addresses()[name], 22), timeout=1) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _outer() -> tuple[str, ...]:
    return ("-P", str(paths.hypervisor()), "-n", _PVE)
