"""The hypervisor itself: its state in, commands and remarks out; what is as wished gives neither."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.context import ctx_host

from gpubox.driver import kernel_log
from gpubox.driver.fabric import Fabric
from gpubox.driver.kernel_log import KernelLog
from gpubox.hypervisor import bars, bus, holders
from gpubox.hypervisor.boot import GRUB_FILE, MARKER, BootFiles
from gpubox.hypervisor.cards import Card
from gpubox.hypervisor.dkms import Kernel, NextBoot
from gpubox.hypervisor.nodes import needed
from gpubox.hypervisor.pending import advice, pending
from gpubox.hypervisor.secure_boot import SecureBoot
from gpubox.hypervisor.state import NODES_UNIT, PERSISTENCE_UNIT, HypervisorHost, Unit
from gpubox.operations.boot import kernel_command_line
from gpubox.operations.modules import NODES_SCRIPT, before_restarts, device_nodes, nova_blacklisted, persistence
from gpubox.settings.host import HypervisorSettings
from gpubox.support.owned_file import Entry, OwnedFile

DEVICES = "Character devices:\n195 nvidia\n511 nvidia-uvm\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)\n"
CARDS = [
    Card(f"0000:{n}1:00.0", "nvidia", n, n, f"GPU-{n}", "NVIDIA RTX PRO 6000 Blackwell Server Edition") for n in (0, 1)
]
AWAKE = (
    "0000:01:00.0 nvidia de10852b 1 auto identity\n"
    "0000:11:00.0 nvidia de10852b 1 auto identity\n"
    "0000:41:00.0 vfio-pci de10852b 0 on DMA\n"
)
RIGHT = HypervisorHost(
    proc_devices=DEVICES,
    nodes={node.path: node for node in needed(DEVICES, [0, 1])},
    cards=CARDS,
    slots=bus.parse(AWAKE),
    driver_text=OPEN,
    params="ModifyDeviceFiles: 1\nDeviceFileMode: 438\n",
    licence="Dual MIT/GPL",
    hmm="Y",
    options="",
    users=0,
    units={NODES_UNIT: Unit("enabled", "active", False), PERSISTENCE_UNIT: Unit("enabled", "active", False)},
    kernels=[Kernel("6.8.12-4-pve", image=True, headers=True, module=True)],
    next_boot=NextBoot("6.8.12-4-pve"),
    boot_files=BootFiles(grub=True),
    command_line="quiet",
    lspci="",
    aspm="[performance]",
    proxmox=True,
    bars=[],
    secure_boot=SecureBoot(on=False),
    kernel_log=KernelLog(readable=True),
    make_log="",
    nova=False,
    files={},
)
WISH = HypervisorSettings()


@pytest.fixture(autouse=True)
def _on_a_host() -> Iterator[None]:
    with ctx_host.use(SimpleNamespace(name="pve01", print_prefix="[pve01] ")):
        yield


def _unit(name: str, file_state: str, active: str = "active", stale: bool = False) -> HypervisorHost:
    return replace(RIGHT, units={**RIGHT.units, name: Unit(file_state, active, stale)})


def _commands(operation: Any, **arguments: Any) -> list[str]:
    commands = operation._inner(**arguments)
    return [command.get_raw_value() for command in commands if isinstance(command, StringCommand)]


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        pytest.param(RIGHT, [], id="as it should be"),
        pytest.param(_unit(NODES_UNIT, ""), [f"systemctl enable {NODES_UNIT}"], id="not yet at boot"),
        pytest.param(_unit(NODES_UNIT, "disabled"), [f"systemctl enable {NODES_UNIT}"], id="somebody disabled it"),
        pytest.param(_unit(NODES_UNIT, "enabled", stale=True), ["systemctl daemon-reload"], id="its file changed"),
        pytest.param(replace(RIGHT, nodes={}), [NODES_SCRIPT], id="no nodes"),
        pytest.param(
            replace(RIGHT, proc_devices=DEVICES.replace("511", "409")), [NODES_SCRIPT], id="the major has moved"
        ),
        pytest.param(
            replace(RIGHT, proc_devices="Character devices:\n195 nvidia\n"), [NODES_SCRIPT], id="nvidia-uvm not loaded"
        ),
    ],
)
@pytest.mark.pain("P01", "P03")
def test_device_nodes(found: HypervisorHost, commands: list[str]) -> None:
    assert _commands(device_nodes, look=lambda: found) == commands


def test_without_the_driver_there_is_nothing_to_make_nodes_of() -> None:
    with pytest.raises(OperationError, match="pve01: /proc/devices has no nvidia: its kernel module is not loaded"):
        _commands(device_nodes, look=lambda: replace(RIGHT, proc_devices="Character devices:\n"))


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        (RIGHT, []),
        (_unit(PERSISTENCE_UNIT, "", "inactive"), []),
        (_unit(PERSISTENCE_UNIT, "masked", "inactive"), []),
        (_unit(PERSISTENCE_UNIT, "disabled", "inactive"), [f"systemctl enable --now {PERSISTENCE_UNIT}"]),
        (_unit(PERSISTENCE_UNIT, "enabled", "inactive"), [f"systemctl start {PERSISTENCE_UNIT}"]),
        (_unit(PERSISTENCE_UNIT, "static", "failed"), [f"systemctl start {PERSISTENCE_UNIT}"]),
        (_unit(PERSISTENCE_UNIT, "static"), []),
    ],
)
@pytest.mark.pain("P13")
def test_persistence(found: HypervisorHost, commands: list[str]) -> None:
    assert _commands(persistence, look=lambda: found) == commands


@pytest.mark.pain("P15")
def test_the_command_line_is_marked_as_not_yet_told_until_it_is() -> None:
    assert _commands(kernel_command_line, words=[], look=lambda: RIGHT) == []
    marked, written, told, done = _commands(kernel_command_line, words=["iommu=pt"], look=lambda: RIGHT)
    assert marked.endswith(f": >{MARKER} && sync {MARKER}")
    assert f"mv -fT {GRUB_FILE}.gpubox-new {GRUB_FILE}" in written
    assert (told, done) == ("update-grub", f"rm -f {MARKER}")
    with pytest.raises(OperationError, match="pve01: no boot loader is recognised here"):
        _commands(kernel_command_line, words=["iommu=pt"], look=lambda: replace(RIGHT, boot_files=BootFiles()))


LACKS = [Kernel("6.8.12-9-pve", image=True, headers=True, module=False), *RIGHT.kernels]


@pytest.mark.parametrize(
    ("found", "wish", "words"),
    [
        pytest.param(RIGHT, WISH, [], id="nothing"),
        pytest.param(replace(RIGHT, hmm="N"), WISH, ["pending reload"], id="the live option"),
        pytest.param(
            replace(RIGHT, fabric=Fabric("nvswitch", version="580.105.08", loaded=True, enabled=True)),
            WISH,
            ["the fabric manager is 580.105.08, the kernel module 580.95.05", "does not run"],
            id="a fabric manager that apt moved",
            marks=pytest.mark.pain("P96"),
        ),
        pytest.param(replace(RIGHT, params="DeviceFileMode: 432\n"), WISH, ["mode 660"], id="nodes kept from users"),
        pytest.param(replace(RIGHT, kernels=LACKS), WISH, ["do not reboot"], id="a kernel without the module"),
        pytest.param(
            replace(RIGHT, kernels=LACKS, make_log="nv.c:5: error: implicit declaration of function 'x'\n"),
            WISH,
            ["do not reboot", "the driver is too old for this kernel"],
            id="a kernel that the driver does not know",
        ),
        pytest.param(replace(RIGHT, kernels=LACKS[:1], driver_text=""), WISH, [], id="a machine without a driver"),
        pytest.param(
            RIGHT, HypervisorSettings(kernel_command_line=["iommu=pt"]), ["pending reboot"], id="the command line"
        ),
        pytest.param(
            replace(RIGHT, driver_text=OPEN.replace("Open ", ""), licence="NVIDIA"),
            WISH,
            ["the open"],
            id="proprietary",
        ),
    ],
)
@pytest.mark.pain("P07", "P08", "P10", "P15")
def test_what_is_pending(found: HypervisorHost, wish: HypervisorSettings, words: list[str]) -> None:
    lines = pending(found, wish)
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))


ASKS = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(
            replace(RIGHT, kernel_log=kernel_log.parse(0, ASKS)),
            ["reboot or power cycle its machine", "nothing is to be restarted into it"],
            id="what the kernel log asks for",
            marks=pytest.mark.pain("P91"),
        ),
        pytest.param(
            replace(RIGHT, cards=[*CARDS, Card("0000:81:00.0", "NovaCore")]),
            ["0000:81:00.0 is held by NovaCore", "nova_core", "update-initramfs"],
            id="a card that another driver took",
            marks=pytest.mark.pain("P90"),
        ),
        pytest.param(
            replace(RIGHT, secure_boot=SecureBoot(on=True, signer="DKMS", enrolled=False)),
            ["Secure Boot is on", "mokutil --import", "console"],
            id="a module that the firmware would refuse",
            marks=pytest.mark.pain("P105"),
        ),
        pytest.param(
            replace(RIGHT, bars=bars.parse("0000:01:00.0 0x2bb5 0x0 0x0 0x0\n")),
            ["0000:01:00.0 got no memory window", "Above 4G Decoding", "pci=realloc"],
            id="a card without a memory window",
            marks=pytest.mark.pain("P104"),
        ),
    ],
)
def test_what_is_told_before_anything_is_rebooted(found: HypervisorHost, words: list[str]) -> None:
    [line] = pending(found, WISH)
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize(
    ("nova", "there", "count"),
    [(False, None, 0), (True, None, 3), (True, "half", 3), (True, "whole", 0)],
)
@pytest.mark.pain("P90")
def test_nova_core_is_blacklisted_where_a_kernel_has_it(nova: bool, there: str | None, count: int) -> None:
    path = holders.BLACKLIST_FILE
    entry = Entry("absent")
    if there is not None:
        file = OwnedFile(path, holders.blacklist_text(done=there == "whole"))
        entry = Entry("file", "644", "root", "root", sha256(file.data).hexdigest())
    commands = list(nova_blacklisted._inner(look=lambda: replace(RIGHT, nova=nova, files={path: entry})))
    said = [command.get_raw_value() for command in commands if isinstance(command, StringCommand)]
    assert (any("update-initramfs -u -k all" in text for text in said)) is (count > 0)
    assert (count == 0) is (commands == [])
    for module in ("nouveau", "nova", "nova_core", "nova_drm"):
        assert f"blacklist {module}\n" in holders.blacklist_text(done=True)


@pytest.mark.pain("P14", "P15")
def test_a_card_that_is_gone_and_one_that_a_vm_may_lose() -> None:
    assert advice(RIGHT) == []
    (line,) = advice(replace(RIGHT, slots=bus.parse(AWAKE.replace("identity", "DMA-FQ"))))
    assert line.startswith("for peer-to-peer copies: the IOMMU translates")
    lost = replace(
        RIGHT, slots=bus.parse("0000:01:00.0 nvidia ffffffff 1 auto DMA\n0000:41:00.0 vfio-pci ffffffff 0 on DMA\n")
    )
    assert [line.split()[1] for line in pending(lost, WISH)] == [slot.pci for slot in lost.slots]
    assert advice(lost) == []
    for state in ("1 on", "0 auto"):
        (line,) = advice(replace(RIGHT, slots=bus.parse(f"0000:41:00.0 vfio-pci de10852b {state} DMA\n")))
        assert line.startswith("card 0000:41:00.0 is a VM's and may sleep")


@pytest.mark.pain("P14")
def test_the_bus_is_read_from_the_kernels_files(tmp_path: Path) -> None:
    files = {
        "vendor": "0x10de\n",
        "class": "0x030000\n",
        "d3cold_allowed": "1\n",
        "power/control": "auto\n",
        "iommu_group/type": "DMA-FQ\n",
    }
    for address, first in {"0000:01:00.0": b"\xde\x10\x85\x2b\x06", "0000:41:00.0": b"\xff" * 64}.items():
        folder = tmp_path / address
        for name in ("power", "iommu_group"):
            (folder / name).mkdir(parents=True)
        (folder / "config").write_bytes(first)
        for name, text in files.items():
            (folder / name).write_text(text)
    (tmp_path / "0000:41:00.0/d3cold_allowed").unlink()
    (tmp_path / "0000:81:00.0").mkdir()
    for name in ("vendor", "class"):
        (tmp_path / "0000:81:00.0" / name).write_text(files[name])
    (tmp_path / "vfio-pci").mkdir()
    (tmp_path / "0000:41:00.0/driver").symlink_to("../vfio-pci")
    line = bus.LIST.replace("/sys/bus/pci/devices", str(tmp_path))
    printed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    assert bus.parse(printed) == [
        bus.Slot("0000:01:00.0", "-", answers=True, d3cold=True, sleeps=True, iommu="DMA-FQ"),
        bus.Slot("0000:41:00.0", "vfio-pci", answers=False, d3cold=False, sleeps=True, iommu="DMA-FQ"),
        bus.Slot("0000:81:00.0", "-", answers=True, d3cold=False, sleeps=False, iommu="off"),
    ]


@pytest.mark.parametrize(
    ("on_disk", "said"),
    [(None, ""), ("580.95.05", ""), ("580.105.08", "580.95.05 is loaded and 580.105.08 lies on disk")],
)
@pytest.mark.pain("P98")
def test_an_upgraded_driver_is_told_before_anything_restarts(
    on_disk: str | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", logger="pyinfra"):
        assert _commands(before_restarts, look=lambda: replace(RIGHT, on_disk=on_disk)) == []
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


@pytest.mark.parametrize(
    ("unheld", "said"),
    [
        ("", []),
        ("nvidia-driver-580 580.95.05-0ubuntu1\nlibnvidia-compute-580 580.95.05-0ubuntu1\n", ["apt-mark hold nvidia-"]),
        ("nvidia-container-toolkit 1.18.0-1\nnvidia-settings 510.47.03-0ubuntu1\n", []),
    ],
)
@pytest.mark.pain("P98")
def test_a_driver_that_may_be_upgraded_by_night_is_told(unheld: str, said: list[str]) -> None:
    lines = advice(replace(RIGHT, unheld=unheld, slots=[]))
    assert [words in line for words, line in zip(said, lines, strict=True)] == [True] * len(said)
