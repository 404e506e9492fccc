"""The configuration of a plain LXC container: our block in it, everything else untouched."""

import pytest

from gpubox.hypervisor.lxc_config import outside, stale_lines, with_passthrough
from gpubox.hypervisor.nodes import Node
from gpubox.support.errors import GpuboxError

CARD = Node("/dev/nvidia0", 195, 0)
UVM = Node("/dev/nvidia-uvm", 238, 0)
USER = "# my box\nlxc.include = /usr/share/lxc/config/common.conf\nlxc.net.0.type = veth\n\nlxc.start.auto = 1 # keep\n"
BLOCK = """# BEGIN gpubox: passthrough (written by gpubox; edits between BEGIN and END are lost)
lxc.cgroup2.devices.allow = c 195:0 rwm
lxc.cgroup2.devices.allow = c 238:0 rwm
lxc.mount.entry = /dev/nvidia0 dev/nvidia0 none bind,optional,create=file 0 0
lxc.mount.entry = /dev/nvidia-uvm dev/nvidia-uvm none bind,optional,create=file 0 0
# END gpubox: passthrough
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", BLOCK, id="empty"),
        pytest.param(USER, USER + BLOCK, id="appended"),
        pytest.param(USER.rstrip("\n"), USER + BLOCK, id="no newline at the end"),
        pytest.param(USER + BLOCK, USER + BLOCK, id="second run"),
        pytest.param(
            USER + BLOCK.replace("238", "511") + "# after\n", USER + BLOCK + "# after\n", id="stale major, in place"
        ),
        pytest.param(USER + BLOCK.replace(" (written", " (other words, "), USER + BLOCK, id="block of another version"),
        pytest.param(USER + BLOCK.rstrip("\n"), USER + BLOCK, id="block ends the file without newline"),
        pytest.param("name = b\udcffx\r\n", "name = b\udcffx\r\n" + BLOCK, id="odd bytes and line ends kept"),
    ],
)
@pytest.mark.pain("P03")
def test_block_stands_once_and_the_rest_is_kept(before: str, after: str) -> None:
    assert with_passthrough(before, [CARD, UVM], "v2") == after


def test_v1_has_its_own_key() -> None:
    assert "lxc.cgroup.devices.allow = c 195:0 rwm\n" in with_passthrough("", [CARD], "v1")


@pytest.mark.parametrize(
    "broken", [BLOCK + BLOCK, BLOCK.replace("# END gpubox: passthrough\n", ""), BLOCK[:200] + "\n" + BLOCK]
)
def test_broken_block_is_an_error(broken: str) -> None:
    with pytest.raises(GpuboxError, match="broken or repeated"):
        with_passthrough(USER + broken, [CARD], "v2")


@pytest.mark.pain("P03")
def test_users_own_stale_majors_are_named() -> None:
    mine = "lxc.cgroup2.devices.allow: c 511:* rwm\nlxc.cgroup.devices.allow = c 195:* rwm\n"
    mine += "# lxc.cgroup2.devices.allow: c 9:* rwm\nlxc.cgroup2.devices.allow = c 409:0\nlxc.uts.name = a\n"
    text = with_passthrough(mine, [UVM], "v2")
    assert stale_lines(text, [195]) == ["lxc.cgroup2.devices.allow: c 511:* rwm", "lxc.cgroup2.devices.allow = c 409:0"]
    assert outside(text) == mine
