"""Which device nodes there must be, from the text of /proc/devices."""

import subprocess
from pathlib import Path

import pytest

from gpubox.hypervisor.nodes import Node, needed, parse, wrong
from gpubox.support.errors import GpuboxError
from gpubox.support.templates import render

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


# what nvidia-modprobe and modprobe do on a machine whose driver is installed and not yet loaded
LOADS = """#!/bin/sh
echo "${{0##*/}} $*" >>{folder}/log
cp -r {folder}/loaded/. {folder}/proc/
"""
MKNOD = """#!/bin/sh
echo "mknod $*" >>{folder}/log
for word; do case $word in */dev/*) touch "$word";; esac; done
"""


def _booted(folder: Path, programs: dict[str, str], loaded_before: bool) -> tuple[int, list[str]]:
    """Run the real script below `folder`, with stand-ins of the programs that need a driver; two cards."""
    for name in ("proc", "dev", "bin"):
        (folder / name).mkdir()
    (folder / "proc/devices").write_text(BARE)
    loaded = folder / ("proc" if loaded_before else "loaded")
    for minor in (1, 0):
        (loaded / f"driver/nvidia/gpus/0000:{minor}1:00.0").mkdir(parents=True)
        (loaded / f"driver/nvidia/gpus/0000:{minor}1:00.0/information").write_text(f"Device Minor: \t {minor}\n")
    (loaded / "devices").write_text(NEW)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text.format(folder=folder))
        (folder / "bin" / name).chmod(0o755)
    script = (
        render("hypervisor-nodes.sh.j2").replace("/proc/", f"{folder}/proc/").replace("/dev/nv", f"{folder}/dev/nv")
    )
    path = f"{folder}/bin:/usr/bin:/bin"
    done = subprocess.run(["sh", "-c", script], env={"PATH": path}, check=False, capture_output=True)
    log = folder / "log"
    return done.returncode, log.read_text().replace(str(folder), "").splitlines() if log.exists() else []


MADE = [
    f"mknod -m 666 /dev/{name}.gpubox-new c {numbers}"
    for name, numbers in {
        "nvidia0": "195 0",
        "nvidia1": "195 1",
        "nvidiactl": "195 255",
        "nvidia-modeset": "195 254",
        "nvidia-uvm": "511 0",
        "nvidia-uvm-tools": "511 1",
    }.items()
]


@pytest.mark.parametrize(
    ("programs", "loaded_before", "asked"),
    [
        pytest.param({"nvidia-modprobe": LOADS}, True, ["nvidia-modprobe -u -c 0", "nvidia-modprobe -m"], id="loaded"),
        pytest.param(
            {"nvidia-modprobe": LOADS}, False, ["nvidia-modprobe -u -c 0", "nvidia-modprobe -m"], id="not yet loaded"
        ),
        pytest.param({"modprobe": LOADS}, False, ["modprobe -a nvidia nvidia-uvm"], id="without nvidia-modprobe"),
    ],
)
@pytest.mark.pain("P01", "P02")
def test_a_boot_ends_with_every_node(
    programs: dict[str, str], loaded_before: bool, asked: list[str], tmp_path: Path
) -> None:
    """The modules may not be there yet when the unit runs: udev loads them beside, and unified memory's nobody."""
    code, log = _booted(tmp_path, {**programs, "mknod": MKNOD}, loaded_before)
    assert (code, sorted(log)) == (0, sorted([*asked, *MADE]))


def test_a_boot_without_a_driver_fails_and_says_so(tmp_path: Path) -> None:
    code, log = _booted(tmp_path, {"modprobe": "#!/bin/sh\nexit 1\n", "mknod": MKNOD}, loaded_before=False)
    assert (code, log) == (1, [])
