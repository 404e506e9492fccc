"""Step `hypervisor`: the cards in the container."""

import json

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.hypervisor.nodes import CONTROL

OPEN = """
import errno, json, os, sys
def opened(path):
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return errno.errorcode[error.errno]
    return "opened"
print(json.dumps({path: opened(path) for path in sys.argv[1:]}))
"""


def nodes(hypervisor: Host) -> list[str]:
    cards = hypervisor.check_output("ls /dev | grep -xE 'nvidia[0-9]+'").split()
    return [f"/dev/{card}" for card in cards] + list(CONTROL)


@pytest.mark.pain("P01", "P03")
def test_every_node_can_be_opened(host: Host, hypervisor: Host, box: Box) -> None:
    """Without a rule of the device cgroup: EPERM. With it, but no driver behind (practice machine): ENXIO."""
    expected = "ENXIO" if box.stack.device == "cpu" else "opened"
    paths = nodes(hypervisor)
    answers = json.loads(host.check_output("python3 -c %s " + " ".join(paths), OPEN))
    assert answers == dict.fromkeys(paths, expected)


@pytest.mark.pain("P03")
def test_the_configuration_allows_the_majors_of_now(hypervisor: Host, box: Box) -> None:
    assert box.settings.container is not None
    text = hypervisor.file(f"/var/lib/lxc/{box.settings.container.name}/config").content_string
    for path in nodes(hypervisor):
        numbers = hypervisor.check_output("stat -c '%%Hr:%%Lr' %s", path)
        assert f" c {numbers} rwm\n" in text, path
        assert f"lxc.mount.entry = {path} {path[1:]} none bind" in text, path


def test_nvidia_smi_sees_the_cards(host: Host, hypervisor: Host) -> None:
    assert host.check_output("nvidia-smi -L") == hypervisor.check_output("nvidia-smi -L")
