"""A box that is reached as a user with sudo, where nothing that lies in /tmp may run."""

import pytest

from tests.faults.packages import DEFAULTS, PackageBox

SUDO = """useradd --create-home --shell /bin/bash ops
cp -r /root/.ssh /home/ops/ && chown -R ops: /home/ops/.ssh
echo 'ops ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/ops
mount -t tmpfs -o noexec tmpfs /tmp"""


@pytest.mark.pain("P78")
def test_nothing_needs_to_run_in_tmp(package_box: PackageBox) -> None:
    package_box.bare()
    package_box.host.run_expect([0], SUDO)
    parts = {"13.1": ["nvcc", "cudart-dev", "libcurand-dev"]}
    cuda = {**DEFAULTS["cuda"], "toolkits": ["13.1"], "parts": parts}
    package_box.wish(ssh_user="ops", _sudo=True, driver={"source": "nvidia"}, cuda=cuda)
    package_box.converge().ended_well()
    assert package_box.converge().ended_well().changed == []
    package_box.wish()
