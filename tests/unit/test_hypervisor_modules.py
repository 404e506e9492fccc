"""Module options, licences, links between cards: what is said about them."""

import pytest

from gpubox.hypervisor.cards import Card
from gpubox.hypervisor.links import findings, redirecting
from gpubox.hypervisor.modules import OPTIONS_FILE, closed_modules, conflicts, options_text, pending_reload, tight_nodes

BLACKWELL = Card("0000:01:00.0", "nvidia", 0, 0, "GPU-a", "NVIDIA RTX PRO 6000 Blackwell Server Edition")
HOPPER = Card("0000:01:00.0", "nvidia", 0, 0, "GPU-a", "NVIDIA H200")
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Release Build"


@pytest.mark.pain("P08", "P09")
def test_options_file_is_one_live_line() -> None:
    lines = [line for line in options_text(True).splitlines() if not line.startswith("#")]
    assert lines == ["options nvidia_uvm uvm_disable_hmm=1"]


@pytest.mark.parametrize(
    ("live", "users", "words"),
    [
        ("Y\n", 0, None),
        ("1", 9, None),
        (None, 0, None),
        ("N\n", 0, ["pending reload", "uvm_disable_hmm=N", "the file says 1", "modprobe -r nvidia_uvm"]),
        ("N", 3, ["3 processes hold the cards", "stop what serves first"]),
    ],
)
@pytest.mark.pain("P08")
def test_a_right_file_with_a_wrong_live_value_is_pending(live: str | None, users: int, words: list[str] | None) -> None:
    line = pending_reload(live, True, users)
    assert (line is None) == (words is None)
    assert all(word in (line or "") for word in words or [])


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (f"{OPTIONS_FILE}:options nvidia_uvm uvm_disable_hmm=1\n", 0),
        ("/etc/modprobe.d/uvm.conf:options nvidia_uvm uvm_disable_hmm=1\n", 0),
        ("/etc/modprobe.d/uvm.conf:options nvidia-uvm uvm_debug=1 uvm_disable_hmm=0\n", 1),
        ("/etc/modprobe.d/n.conf:options nvidia NVreg_DeviceFileMode=0660\n", 0),
    ],
)
@pytest.mark.pain("P08")
def test_conflicting_files(options: str, count: int) -> None:
    assert len(conflicts(options, True)) == count


DEBIAN = "/etc/modprobe.d/nvidia-kernel-common.conf"


@pytest.mark.parametrize(
    ("params", "options", "file"),
    [
        ("ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n", "", None),
        (
            "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n",
            f"/etc/modprobe.d/a.conf:options nvidia NVreg_Foo=1\n{DEBIAN}:options nvidia NVreg_DeviceFileMode=0660\n",
            DEBIAN,
        ),
        ("ModifyDeviceFiles: 1\nDeviceFileMode: 432\n", "", "its options"),
        ("ModifyDeviceFiles: 0\nDeviceFileMode: 432\n", "", None),
        ("", f"{DEBIAN}:options nvidia NVreg_DeviceFileMode=0660\n", None),
    ],
)
@pytest.mark.pain("P02", "P17")
def test_a_mode_that_the_driver_restores_is_named_with_its_file(params: str, options: str, file: str | None) -> None:
    line = tight_nodes(params, options)
    assert (line is None) == (file is None)
    assert file is None or ("mode 660" in (line or "") and f"NVreg_DeviceFileMode=0666 in {file}," in (line or ""))


@pytest.mark.parametrize(
    ("version", "licence", "card", "wrong"),
    [
        (OPEN, "NVIDIA", BLACKWELL, False),
        (CLOSED, "NVIDIA", BLACKWELL, True),
        (CLOSED, "NVIDIA", HOPPER, False),
        ("", "NVIDIA", BLACKWELL, True),
        ("", "Dual MIT/GPL", BLACKWELL, False),
        ("", None, BLACKWELL, False),
    ],
)
@pytest.mark.pain("P10")
def test_blackwell_needs_the_open_modules(version: str, licence: str | None, card: Card, wrong: bool) -> None:
    assert bool(closed_modules(version, licence, [card])) == wrong


LSPCI = """00:01.1 PCI bridge: AMD Root Port
\tCapabilities: [270] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
01:00.0 PCI bridge: Broadcom switch
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
02:00.0 3D controller: NVIDIA
"""


@pytest.mark.pain("P57", "P58")
def test_acs_is_read_from_its_control_not_its_capability() -> None:
    assert redirecting(LSPCI) == ["00:01.1"]


@pytest.mark.parametrize(
    ("iommu", "lspci", "aspm", "line", "count"),
    [
        ("off", "", "", "", 0),
        ("identity", "", "[performance] default", "", 0),
        ("DMA-FQ", LSPCI, "[default] performance", "", 3),
        ("DMA", None, "[default] performance", "pcie_aspm=off quiet", 2),
    ],
)
@pytest.mark.pain("P15", "P57", "P58")
def test_findings(iommu: str, lspci: str | None, aspm: str, line: str, count: int) -> None:
    assert len(findings({"0000:01:00.0": iommu}, lspci, aspm, line)) == count
