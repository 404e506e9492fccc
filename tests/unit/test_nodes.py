"""Which device nodes there must be, from the text of /proc/devices."""

import subprocess

import pytest

from gpubox.errors import GpuboxError
from gpubox.hypervisor.nodes import Node, needed, parse, wrong
from gpubox.templates import render

FRONTEND = (
    "Character devices:\n  1 mem\n195 nvidia-frontend\n235 nvidia-caps\n238 nvidia-uvm\n\nBlock devices:\n238 loop\n"
)
NEW = "Character devices:\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n511 nvidia-uvm\n\nBlock devices:\n"
BARE = "Character devices:\n  1 mem\n\nBlock devices:\n  8 sd\n"


@pytest.mark.parametrize(("text", "uvm"), [(FRONTEND, 238), (NEW, 511)])
@pytest.mark.pain("P03")
def test_nodes_are_numbered_by_the_kernel(text: str, uvm: int) -> None:
    assert needed(text, [1, 0]) == [
        Node("/dev/nvidia0", 195, 0),
        Node("/dev/nvidia1", 195, 1),
        Node("/dev/nvidiactl", 195, 255),
        Node("/dev/nvidia-uvm", uvm, 0),
        Node("/dev/nvidia-uvm-tools", uvm, 1),
        Node("/dev/nvidia-modeset", 195, 254),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BARE, "no nvidia:"),
        (NEW.replace("511 nvidia-uvm\n", ""), "no nvidia-uvm:"),
        (BARE + "195 nvidia\n", "no nvidia:"),
    ],
)
def test_driver_that_is_not_loaded_is_an_error(text: str, message: str) -> None:
    with pytest.raises(GpuboxError, match=message):
        needed(text, [0])


@pytest.mark.pain("P01", "P03", "P17")
def test_wrong_nodes_are_named_with_what_is_wrong() -> None:
    present = parse("/dev/nvidia0 c3 0 666\n/dev/nvidia1 c3 1 660\n/dev/nvidia-uvm ee 0 666\n")
    cards = [Node("/dev/nvidia0", 195, 0), Node("/dev/nvidia1", 195, 1)]
    assert wrong([*cards, Node("/dev/nvidia-uvm", 511, 0), Node("/dev/nvidiactl", 195, 255)], present) == [
        "/dev/nvidia1 has mode 660, not 666: users are kept out",
        "/dev/nvidia-uvm is 238:0, the kernel's is 511:0",
        "/dev/nvidiactl is missing",
    ]


def test_the_script_for_each_boot_is_a_script() -> None:
    subprocess.run(["sh", "-n"], input=render("hypervisor-nodes.sh.j2"), text=True, check=True)
