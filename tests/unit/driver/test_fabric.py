"""The fabric manager: which machines need it, in which version, and what their cards say of it."""

import subprocess
from pathlib import Path

import pytest

from gpubox.driver import fabric
from gpubox.driver.fabric import Fabric

pytestmark = pytest.mark.pain("P96")

UNIT = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
NO_UNIT = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
RUNS = Fabric("nvswitch", version="580.95.05", loaded=True, enabled=True, active=True)

# nvidia-smi -q: an H100 of HGX (as leptonai/gpud and Azure/azhpc-images print it), a card beside no switch, a stuck one
QUERY = """\
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GSP Firmware Version                  : 580.95.05
    Performance State                     : P0
    Fabric
        State                             : {state}
        Status                            : {status}
        CliqueId                          : 0
        ClusterUUID                       : 00000000-0000-0000-0000-000000000000
        Health
            Bandwidth                     : N/A
    Processes                             : None
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"kind nvswitch\nversion 580.95.05\n{UNIT}", RUNS),
        (f"version \n{NO_UNIT}", Fabric()),
        (f"module ib_umad\nversion \n{NO_UNIT}", Fabric(modules=frozenset({"ib_umad"}))),
        (f"kind nvlink5\nmodule mlx5_ib\nversion \n{NO_UNIT}", Fabric("nvlink5", frozenset({"mlx5_ib"}))),
        ("", Fabric()),
    ],
)
def test_what_a_machine_says(text: str, found: Fabric) -> None:
    assert fabric.parse(text) == found


@pytest.mark.parametrize(
    ("devices", "model", "kind"),
    [
        ({"0000:09:00.0": ("0x10de", "0x068000", b"")}, "NVIDIA H200", "nvswitch"),
        ({"0000:01:00.0": ("0x10de", "0x030200", b"")}, "NVIDIA H200", ""),
        ({"0000:01:00.0": ("0x15b3", "0x020700", b"\x82ConnectX-7 SMDL=SW_MNG")}, "NVIDIA B200", "nvlink5"),
        ({"0000:01:00.0": ("0x15b3", "0x020700", b"\x82ConnectX-7 400G")}, "NVIDIA B200", ""),
        ({"0000:01:00.0": ("0x15b3", "0x020700", b"SMDL=SW_MNG")}, "NVIDIA H200", ""),
        ({"0000:00:00.0": ("0x8086", "0x068000", b"")}, "NVIDIA GeForce RTX 4090", ""),
    ],
)
def test_the_question_finds_switches(
    tmp_path: Path, devices: dict[str, tuple[str, str, bytes]], model: str, kind: str
) -> None:
    for address, (vendor, pci_class, vpd) in devices.items():
        folder = tmp_path / "devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{pci_class}\n")
        (folder / "vpd").write_bytes(vpd)
    gpus = tmp_path / "gpus/0000:18:00.0"
    gpus.mkdir(parents=True)
    (gpus / "information").write_text(f"Model: \t\t {model}\n")
    asked = fabric.QUESTION.replace("/sys/bus/pci/devices", str(tmp_path / "devices"))
    asked = asked.replace("/proc/driver/nvidia/gpus", str(tmp_path / "gpus"))
    done = subprocess.run(["sh", "-c", asked], capture_output=True, text=True)
    assert fabric.parse(done.stdout).kind == kind


@pytest.mark.parametrize(
    ("found", "module", "says"),
    [
        (RUNS, "580.95.05", []),
        (Fabric(), "580.95.05", []),
        (Fabric(loaded=True, version="570.124.06"), "580.95.05", []),
        (Fabric("nvswitch"), "580.95.05", ["no fabric manager"]),
        (
            Fabric("nvswitch", version="580.105.08", loaded=True, enabled=True),
            "580.95.05",
            ["the fabric manager is 580.105.08, the kernel module 580.95.05", "does not run"],
        ),
        (
            Fabric("nvlink5", frozenset({"mlx5_ib"}), "580.95.05", loaded=True, enabled=True, active=True),
            "580.95.05",
            ["ib_umad not loaded"],
        ),
    ],
)
def test_what_is_wrong(found: Fabric, module: str, says: list[str]) -> None:
    lines = fabric.wrong(found, module)
    assert len(lines) == len(says)
    assert all(words in line for words, line in zip(says, lines, strict=True))


@pytest.mark.parametrize(
    ("state", "status", "says"),
    [
        ("Completed", "Success", ""),
        ("N/A", "N/A", ""),
        ("Not Supported", "Success", ""),
        ("In Progress", "N/A", "2 of 2 cards: fabric state In Progress"),
        ("Not Started", "N/A", "fabric state Not Started"),
        ("Completed", "Insufficient Resources", "fabric state Completed, Insufficient Resources"),
    ],
)
def test_what_the_cards_say(tmp_path: Path, state: str, status: str, says: str) -> None:
    text = QUERY.format(state=state, status=status) * 2
    words = fabric.STATES.replace("nvidia-smi -q", "cat")
    printed = subprocess.run(["sh", "-c", words], input=text, capture_output=True, text=True, check=True).stdout
    lines = fabric.wrong(RUNS, "580.95.05", printed)
    assert [says in line for line in lines] == ([True] if says else [])


@pytest.mark.parametrize(
    ("offers", "module", "chosen"),
    [
        ({"nvidia-fabricmanager-570": ["570.133.20-1", "570.124.06-1"]}, "570.124.06", "nvidia-fabricmanager-570"),
        ({"nvidia-fabricmanager": ["590.48.01-1", "580.95.05-1"]}, "580.95.05", "nvidia-fabricmanager"),
        ({"nvidia-fabricmanager-580": ["580.126.20-0ubuntu3"]}, "580.126.20", "nvidia-fabricmanager-580"),
        ({"nvidia-fabricmanager-580": ["580.126.20-0ubuntu3"]}, "580.95.05", None),
        ({}, "580.95.05", None),
    ],
)
def test_the_package_of_exactly_that_version(offers: dict[str, list[str]], module: str, chosen: str | None) -> None:
    found = fabric.choose(offers, module)
    assert (found and found[0]) == chosen
    assert found is None or found[1].startswith(f"{module}-")


def test_switches_of_a_virtual_machine_are_not_this_machines(tmp_path: Path) -> None:
    folder = tmp_path / "devices/0000:09:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text("0x10de\n")
    (folder / "class").write_text("0x068000\n")
    asked = fabric.QUESTION.replace("/sys/bus/pci/devices", str(tmp_path / "devices"))
    for driver, kind in (("nvidia-nvswitch", "nvswitch"), ("vfio-pci", "")):
        (folder / "driver").unlink(missing_ok=True)
        (folder / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
        done = subprocess.run(["sh", "-c", asked], capture_output=True, text=True)
        assert fabric.parse(done.stdout).kind == kind


def test_headers_are_not_the_fabric_manager() -> None:
    assert fabric.is_package("nvidia-fabricmanager-580")
    assert fabric.is_package("nvidia-fabricmanager")
    assert not fabric.is_package("nvidia-fabricmanager-dev-580")
