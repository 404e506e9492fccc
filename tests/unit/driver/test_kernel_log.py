"""The kernel log: every Xid that the catalogue has in use, what stays to be done, lines as public reports show them."""

import pytest

from gpubox.driver import kernel_log
from gpubox.driver.kernel_log import KernelLog, events, recovery

IN_USE = [
    *(8, 11, 13, 14, 25, 31, 32, *range(37, 42), 43, 44, 45, 46, 48, 54, 56, 57, 60, 61, 62, 63, 64, 66, 67, 68, 69),
    *(70, 71, 72, 74, *range(75, 81), *range(82, 87), 88, 89, *range(92, 111), *range(119, 138), *range(139, 173)),
]
XID = "NVRM: Xid (PCI:0000:01:00): {}, "
REBOOT = XID.format(154) + "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
RESET = XID.format(154) + "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
PF_FLR = XID.format(154) + "GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)"
DRAIN = XID.format(154) + "GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"
DRAIN_AND_RESET = XID.format(154) + "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
SYSTEM = XID.format(154) + "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x7 (System Reboot Required)"
NONE = XID.format(154) + "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)"
LOST = "NVRM: Xid (PCI:0000:81:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@pytest.mark.parametrize("number", IN_USE)
def test_every_number_in_use_has_a_meaning_and_a_cure(number: int) -> None:
    found = events([XID.format(number) + "pid=1234, name=python, Ch 00000008"])
    assert len(found) == 1
    assert found[0].pci == "0000:01:00.0"
    assert found[0].meaning != kernel_log.NOT_KNOWN
    assert found[0].cure
    assert found[0].source.startswith("https://")


def test_every_action_is_one_of_the_table() -> None:
    assert {xid.action for xid in kernel_log.table().xids.values()} <= kernel_log.table().actions.keys()


def test_a_number_that_is_not_known_shows_itself() -> None:
    [found] = events(["[ 12.5] NVRM: Xid (PCI:0000:01:00): 999, something new"])
    assert (found.status, found.meaning) == ("warn", kernel_log.NOT_KNOWN)
    assert "999, something new" in found.found


@pytest.mark.parametrize(
    ("line", "pci", "number"),
    [
        ("NVRM: Xid (PCI:0000:26:00 GPU-I:05): 13, pid=1, Graphics SM Warp Exception", "0000:26:00.0", "xid-13"),
        ("NVRM: Xid (0000:03:00): 31, Ch 00000008", "0000:03:00.0", "xid-31"),
        ("NVRM: Xid (PCI:0009:01:00): 119, pid=2, name=python3, Timeout after 6s", "0009:01:00.0", "xid-119"),
        ("2026-11-29T15:18:05+0000 hv kernel: NVRM: Xid (PCI:0000:C1:00): 48", "0000:c1:00.0", "xid-48"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46", "0000:c1:00.0", "sxid-28006"),
    ],
)
def test_forms_of_the_line(line: str, pci: str, number: str) -> None:
    [found] = events([line])
    assert (found.pci, found.id) == (pci, number)


def test_a_switch_says_itself_whether_it_is_fatal() -> None:
    found = events(
        [
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 19084, Non-fatal, Link 30 AN1 Heartbeat Timeout Error",
        ]
    )
    assert [event.status for event in found] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ([], []),
        ([REBOOT], ["reboot or power cycle"]),
        ([SYSTEM], ["reboot or power cycle"]),
        ([RESET], ["reset it, or reboot"]),
        ([PF_FLR], ["reset it, or reboot"]),
        ([DRAIN_AND_RESET], ["reset it, or reboot"]),
        ([DRAIN], []),
        ([REBOOT, NONE], []),
        ([NONE, REBOOT], ["reboot or power cycle"]),
        ([LOST], ["0000:81:00.0: reboot or power cycle"]),
        ([LOST, "NVRM: GPU 0000:81:00.0: GPU has fallen off the bus.", REBOOT], ["0000:81:00.0", "0000:01:00.0"]),
        ([XID.format(8), XID.format(119), XID.format(109), REBOOT], ["reboot or power cycle"]),
        ([XID.format(43), XID.format(31)], []),
    ],
)
@pytest.mark.pain("P91")
def test_what_has_to_be_done_before_a_card_is_used_again(log: list[str], said: list[str]) -> None:
    asked = recovery(events(log))
    assert len(asked) == len(said)
    for line, words in zip(asked, said, strict=True):
        assert words in line


@pytest.mark.pain("P91")
def test_other_containers_cards_and_cards_that_came_back_ask_nothing() -> None:
    found = events([LOST, REBOOT])
    assert recovery(found, cards={"0000:21:00.0"}) == []
    assert [line[:17] for line in recovery(found, answering={"0000:81:00.0", "0000:01:00.0"})] == ["card 0000:01:00.0"]


@pytest.mark.parametrize(
    ("line", "known", "status"),
    [
        ("NVRM: GPU 0000:81:00.0: GPU has fallen off the bus.", "fallen-off-the-bus", "fail"),
        ("pci 0000:41:00.0: BAR 1 [mem size 0x2000000000 64bit pref]: can't assign; no space", "bar-no-space", "warn"),
        ("pci 0000:41:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]", "bar-no-space", "warn"),
        ("pci 0000:41:00.0: BAR 1: failed to assign [mem size 0x800000000 64bit pref]", "bar-no-space", "warn"),
        ("Loading of unsigned module is rejected", "key-rejected", "fail"),
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "key-rejected", "fail"),
        ("nouveau 0000:01:00.0: NVIDIA GB202 (1b2000a1)", "other-driver", "fail"),
        ("NovaCore 0000:01:00.0: NVIDIA (Chipset: GB202)", "other-driver", "fail"),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x1a:2631)", "init-failed", "fail"),
        (
            "NVRM: API mismatch: the client has the version 570.124.06, but this kernel module has 570.124.04",
            "module-mismatch",
            "warn",
        ),
        (
            "pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error message received from 0000:41:00.0",
            "pcie-fatal",
            "warn",
        ),
        ("pcieport 0000:40:01.1: PCIe Bus Error: severity=Corrected, type=Physical Layer", "pcie-corrected", "pass"),
        ("pcieport 0000:40:01.1: pciehp: Slot(1): Link Down", "pcie-link", "warn"),
        (
            "Out of memory: Killed process 4711 (python3) total-vm:9kB, anon-rss:8kB",
            "out-of-memory",
            "warn",
        ),
        ("request_free_mem_region() err -34", "hmm-window", "fail"),
    ],
)
@pytest.mark.pain("P90", "P92", "P104", "P105")
def test_other_lines(line: str, known: str, status: str) -> None:
    [found] = events([f"2026-11-29T15:18:05+0000 hv kernel: {line}"])
    assert (found.id, found.status, found.text) == (known, status, line)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build",
        "nvidia-uvm: Loaded the UVM driver, major device number 511.",
        "nvidia 0000:01:00.0: vgaarb: VGA decodes changed: olddecodes=io+mem,decodes=none:owns=none",
        "pci 0000:41:00.0: BAR 1 [mem 0x90000000000-0x91fffffffff 64bit pref]",
        "vmbr0: port 2(vethxuoOIB) entered forwarding state",
        "Out of memory: Killed process 4711 (mysqld) total-vm:9kB",
    ],
)
def test_ordinary_lines_say_nothing(line: str) -> None:
    assert events([line]) == []


def test_repeated_lines_are_one_event_with_a_count() -> None:
    found = events([XID.format(31) + "a", LOST, XID.format(31) + "b"])
    assert [(event.id, event.count) for event in found] == [("xid-79", 1), ("xid-31", 2)]
    assert "b" in found[1].text


def test_a_log_that_may_not_be_read_is_no_silence() -> None:
    refused = kernel_log.parse(1, "dmesg: read kernel buffer failed: Operation not permitted\n")
    assert refused == KernelLog([], False, "dmesg: read kernel buffer failed: Operation not permitted")
    assert kernel_log.parse(0, "").readable
