"""The three kinds of hypervisor: where a container's configuration is, how it is asked, entered, started, restarted.

Programs have absolute paths: what a command over ssh or inside `pct exec` finds in its PATH differs from a login shell
(community-scripts/ProxmoxVE#11970).
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Name = Literal["lxc", "proxmox", "incus"]

STOP_SECONDS = 90
"""How long a container's own shutdown may take before it is killed; a server frees its cards within seconds."""
ABSENT = 44
"""Exit code of the configuration question when there is no such container."""
# the daemon's own messages go to a log, which alone says why a start failed
_LXC_START = """log=/run/gpubox-lxc-start.log; rm -f "$log"; /usr/bin/lxc-start -n "$1" -o "$log" -l ERROR || {
cat "$log" >&2; exit 1; }"""
# what a login of root gives, and lxc-attach and pct exec do not
_LOGIN = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]


@dataclass(frozen=True)
class Kind:
    """Shell text and words for one container of one kind. `container` is quoted wherever it becomes shell text."""

    name: Name
    container: str

    @property
    def config_path(self) -> str:
        """The configuration file; empty for Incus, which keeps it in its own database."""
        paths = {"lxc": f"/var/lib/lxc/{self.container}/config", "proxmox": f"/etc/pve/lxc/{self.container}.conf"}
        return paths.get(self.name, "")

    @property
    def config_question(self) -> str:
        """Shell text that prints the configuration; exit code 44: there is no such container."""
        if self.name != "incus":
            file = shlex.quote(self.config_path)
            return f"if [ -e {file} ]; then cat {file}; else exit {ABSENT}; fi"
        url = shlex.quote(f"/1.0/instances/{self.container}")
        known = shlex.quote(f'"/1.0/instances/{self.container}"')
        listed = f'all=$(/usr/bin/incus query /1.0/instances) || exit 2; case "$all" in *{known}*) ;; *) exit {ABSENT}'
        return f"{listed};; esac; /usr/bin/incus query {url}"

    @property
    def state_question(self) -> str:
        """Shell text whose last word, in any case, is running or stopped."""
        name = shlex.quote(self.container)
        if self.name == "incus":
            return f"/usr/bin/incus list --format csv --columns s {shlex.quote(f'^{self.container}$')}"
        return f"/usr/sbin/pct status {name}" if self.name == "proxmox" else f"/usr/bin/lxc-info -n {name} -sH"

    def inside(self, command: str) -> list[str]:
        """The words that run shell text as root inside the running container, with a known PATH and HOME."""
        run = {
            "lxc": ["/usr/bin/lxc-attach", "-n", self.container, "--clear-env", "--"],
            "proxmox": ["/usr/sbin/pct", "exec", self.container, "--"],
            "incus": ["/usr/bin/incus", "exec", self.container, "--"],
        }
        return [*run[self.name], "/usr/bin/env", *_LOGIN, "/bin/sh", "-c", command]

    def locked(self, commands: Sequence[Sequence[str]]) -> list[str]:
        """The words that run the commands one after the other under the container's lock.

        They go on when the run that asked for them is killed; the next one waits for their end (settled_question).
        What they start does not get the lock (-o).
        """
        return ["flock", "-o", self.lock, "/bin/sh", "-c", " && ".join(shlex.join(words) for words in commands)]

    @property
    def lock(self) -> str:
        """File that is locked while the container is made, stopped, started or given its sshd."""
        return f"/run/gpubox-container-{self.container}.lock"

    @property
    def settled_question(self) -> str:
        """Shell text that ends when nothing makes, stops or starts the container; 1 if that takes too long."""
        lock = shlex.quote(self.lock)
        return f"[ ! -e {lock} ] || flock -w {STOP_SECONDS + 60} {lock} true"

    def start(self) -> list[list[str]]:
        """The commands, as words, that start the container."""
        if self.name == "proxmox":
            return [["/usr/sbin/pct", "start", self.container]]
        if self.name == "incus":
            return [["/usr/bin/incus", "start", self.container]]
        wait = ["/usr/bin/lxc-wait", "-n", self.container, "-s", "RUNNING", "-t", "60"]
        return [["/bin/sh", "-c", _LXC_START, "lxc-start", self.container], wait]

    def restart(self, unit: bool) -> list[list[str]]:
        """The commands that stop it (killing it after STOP_SECONDS) and start it. `unit`: systemd runs it (plain LXC).

        Not a reboot from inside: LXC would keep the configuration that it has in memory.
        """
        if unit:
            return [["systemctl", "restart", f"lxc@{self.container}.service"]]
        stop = {
            "lxc": ["/usr/bin/lxc-stop", "-n", self.container, "-t", str(STOP_SECONDS)],
            "proxmox": [
                "/usr/sbin/pct",
                "shutdown",
                self.container,
                "--timeout",
                str(STOP_SECONDS),
                "--forceStop",
                "1",
            ],
            "incus": ["/usr/bin/incus", "stop", self.container, "--timeout", str(STOP_SECONDS)],
        }
        return [stop[self.name], *self.start()]
