"""A box of the practice machine for tests that break its packages: bare in a second, brought up by package steps."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testinfra
from testinfra.host import Host

from gpubox.inventory import load
from gpubox.lab import lifecycle
from gpubox.support import paths
from tests.deploy import Run, changed
from tests.ssh import spec

NAME, ADDRESS = "gpu03", "10.87.0.13"
STEPS = Path(__file__).parent / "packages_deploy.py"
OLD_CARD, LABS_CARD = "tesla-t4-x1", "rtx-pro-6000-x8"
CUDA = "http://10.87.0.10:8080/cuda/debian12/x86_64/"
DEFAULTS: dict[str, Any] = {
    "ssh_hostname": ADDRESS,
    "ssh_user": "root",
    "ssh_key": "/var/lib/gpubox-lab/ssh/id_ed25519",
    "ssh_known_hosts_file": "/var/lib/gpubox-lab/ssh/known_hosts",
    "profile": "tiny-cpu",
    "base": {"packages": ["ca-certificates", "curl"]},
    "driver": {"source": "distribution"},
    "cuda": {
        "source": {
            "uri": CUDA,
            "keyring": "/var/lib/gpubox-lab/apt/cuda/debian12/x86_64/cuda-keyring_1.1-1_all.deb",
        }
    },
}
_INVENTORY = """from gpubox.inventory import checked
gpu_boxes = [({name!r}, {data!r})]
checked(globals())
"""


@dataclass
class PackageBox:
    """gpu03, with an inventory of its own."""

    folder: Path

    def wish(self, **settings: Any) -> None:
        """What its data says, over DEFAULTS."""
        self.inventory.write_text(_INVENTORY.format(name=NAME, data={**DEFAULTS, **settings}))

    def bare(self) -> None:
        """Give it back as it was made, with nothing of an earlier test."""
        lifecycle.reset(NAME)

    def sees(self, card: str, driver: str | None = None) -> None:
        """Which hardware and kernel module it sees."""
        lifecycle.give_hardware(NAME, card, driver)

    @property
    def inventory(self) -> Path:
        """Its inventory file."""
        return self.folder / "inventory.py"

    @property
    def host(self) -> Host:
        """To run commands on it."""
        return testinfra.get_host(spec(NAME, load(self.inventory).box(NAME).connection))

    def start(self, deploy: Path = STEPS) -> subprocess.Popen[str]:
        """Begin a run of the package steps, or of another deploy."""
        program = str(Path(sys.executable).parent / "pyinfra")
        command = [program, "-y", "--json", str(self.inventory), str(deploy)]
        environment = {**os.environ, "PYTHONPATH": str(paths.root())}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=paths.root(), env=environment
        )

    def converge(self, deploy: Path = STEPS) -> Run:
        """One whole run."""
        running = self.start(deploy)
        stdout, stderr = running.communicate()
        return Run(running.returncode, changed(stdout), stdout + stderr)

    def killed_after(self, seconds: float) -> None:
        """A run that is killed without a word after so long."""
        running = self.start()
        time.sleep(seconds)
        running.send_signal(signal.SIGKILL)
        running.communicate()

    def state(self) -> dict[str, list[str]]:
        """Everything that two runs to the same end must agree on: packages, alternatives, holds, files."""
        return {name: self.host.check_output(command).splitlines() for name, command in _STATE.items()}


def differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    """Lines that only one of two states has."""
    return [f"{name}: {line}" for name in one for line in sorted(set(one[name]) ^ set(other[name]))]


def errors(output: str) -> str:
    """What a run printed, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


_FOLDERS = "/etc /opt /usr /var/lib/gpubox /var/lib/dpkg/info"
_STATE = {
    "packages": "dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Architecture} ${Version}\\n'",
    "alternatives": "update-alternatives --get-selections | tr -s ' '",
    "holds": "apt-mark showhold",
    "marks": "apt-mark showmanual",
    "files": f"find {_FOLDERS} -xdev '(' -type f -o -type l ')' ! -path '/var/lib/gpubox/aside/*' ! -name '*.pyc' "
    "! -name ld.so.cache -printf '%p %M %u %g %l %s\\n'",
    "etc": "find /etc -xdev -type f ! -name ld.so.cache -exec sha256sum {} +",
}
