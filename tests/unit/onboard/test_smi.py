"""What nvidia-smi lists: one broken card does not hide the others, and nothing that is not told becomes a number."""

import pytest

from gpubox.facts.answers import Answer
from gpubox.nccl.choose import Choice, choose
from gpubox.onboard import card, hardware, probe, smi
from gpubox.onboard.findings import findings
from gpubox.onboard.state import Box, BrokenCard
from tests.unit import simulated

ROW = "{}, GPU-{}, NVIDIA H200, 9.0, 143771, 700.00, 00000000:{:02X}:00.0, 5, 5, 16, 16, 41"
GOOD = [ROW.format(n, n, n + 1) for n in range(4)]
ON_BUS = [f"0000:{n + 1:02x}:00.0 nvidia" for n in range(4)]


def listed(*lines: str, rc: int = 0) -> smi.Listed:
    return smi.read(Answer(rc, "\n".join(lines)), {}, ON_BUS)


def bracketed(word: str, *, index: str = "[x]", pci: str = "[x]") -> str:
    cells = [index, *[f"[{word}]"] * 5, pci, *[f"[{word}]"] * 5]
    return ", ".join(cells).replace("[x]", f"[{word}]")


@pytest.mark.parametrize(
    ("row", "broken"),
    [
        (bracketed("Unknown Error"), BrokenCard(2, "0000:03:00.0", "Unknown Error")),
        (bracketed("GPU is lost"), BrokenCard(2, "0000:03:00.0", "GPU is lost")),
        (
            bracketed("GPU is lost", index="2", pci="00000000:03:00.0"),
            BrokenCard(2, "0000:03:00.0", "GPU is lost"),
        ),
        (
            ROW.format(2, 2, 3).replace("143771", "[GPU requires reset]"),
            BrokenCard(2, "0000:03:00.0", "GPU requires reset"),
        ),
        (ROW.format(2, 2, 3).replace("700.00", "[Unknown Error]"), BrokenCard(2, "0000:03:00.0", "Unknown Error")),
    ],
)
@pytest.mark.pain("P92")
def test_a_broken_card_is_named_and_the_others_are_whole(row: str, broken: BrokenCard) -> None:
    found = listed(GOOD[0], GOOD[1], row, GOOD[3])
    assert [one.index for one in found.cards] == [0, 1, 3]
    assert {one.name for one in found.cards} == {"NVIDIA H200"}
    assert found.broken == [broken]
    assert found.trouble == ""


@pytest.mark.pain("P92")
def test_a_message_beside_rows_names_the_card() -> None:
    said = "Unable to determine the device handle for GPU0000:03:00.0: Unknown Error"
    found = listed(said, GOOD[0], GOOD[1], GOOD[3], rc=255)
    assert [one.index for one in found.cards] == [0, 1, 3]
    assert found.broken == [BrokenCard(None, "0000:03:00.0", said)]
    assert found.broken[0].label == "card (0000:03:00.0)"


@pytest.mark.parametrize(
    "said",
    [
        "Unable to determine the device handle for GPU0000:07:00.0: Unknown Error",
        "Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.  Reboot the system",
        "Unable to determine the device handle for GPU0: 0000:07:00.0: Unknown Error",
    ],
)
def test_a_message_alone_is_the_trouble(said: str) -> None:
    found = listed(said, "No devices were found", rc=6)
    assert found.cards == []
    assert found.broken[0].pci == "0000:07:00.0"
    assert said.split("  ")[0] in found.trouble


@pytest.mark.parametrize("word", ["[N/A]", "[Not Supported]", "[Insufficient Permissions]", "[A New Word]", ""])
@pytest.mark.pain("P92", "P101")
def test_each_value_may_be_missing_by_itself(word: str) -> None:
    for place in range(12):
        cells = GOOD[0].split(", ")
        cells[place] = word
        found = listed(", ".join(cells))
        assert found.broken == []
        [one] = found.cards
        assert one.index == 0
        assert one.memory_mib in {143771, None}
        assert one.memory_mib != 0
        assert (one.unknown != ()) is (word == "[A New Word]")


@pytest.mark.parametrize(
    ("rc", "said", "trouble"),
    [
        (127, "", "nvidia-smi is not there"),
        (9, "NVIDIA-SMI has failed\nMake sure", "NVIDIA-SMI has failed Make sure"),
        (3, "", "nvidia-smi ended with 3"),
        (0, "", "nvidia-smi lists no cards"),
        (0, bracketed("GPU is lost"), "no card answers: GPU is lost"),
        (0, "Last login: today, from, a, banner", "Last login: today, from, a, banner"),
    ],
)
def test_without_cards_there_is_its_word(rc: int, said: str, trouble: str) -> None:
    assert listed(said, rc=rc).trouble == trouble


def described(name: str, place: str = "bare", **more: str) -> Box:
    return simulated.box(name, place, **more)


@pytest.mark.pain("P92")
def test_onboard_shows_two_broken_cards_of_eight_and_goes_on() -> None:
    box = described("rtx-pro-6000-x8-lost")
    told = [one for one in findings("box", box, None) if one.rule == "card-broken"]
    assert [one.severity for one in told] == ["error", "error"]
    assert "card 2 (0000:41:00.0) is broken: GPU is lost" in told[0].found
    assert "card 5 (0000:a1:00.0) is broken: Unknown Error" in told[1].found
    assert [one.rule for one in findings("box", box, None) if one.rule == "box-mixed-cards"] == []
    assert len(box.gpus.cards) == 6
    facts = box.facts()
    assert facts.cards is not None
    assert {one.memory_mib for one in facts.cards} == {97887}
    assert len(facts.broken_cards) == 2
    lines = [*card.lines(box, None, _choice())]
    assert ("broken", "card 2 (0000:41:00.0): GPU is lost; all else of it is not known") in lines
    assert not [text for _, text in lines if "0 MiB" in text or " 0.0 GiB, " in text]


def _choice() -> Choice:
    return choose(None, None, None, [])


@pytest.mark.pain("P92")
def test_all_ones_on_the_bus_are_a_card_that_is_gone() -> None:
    bus = "0000:01:00.0 nvidia de10851b 0 on DMA\n0000:02:00.0 nvidia ffffffff 0 on DMA\n"
    box = described("rtx-4090-x1-vm", "vm", bus=bus)
    [told] = [one for one in findings("box", box, None) if one.rule == "card-gone"]
    assert "0000:02:00.0" in told.found
    lost = simulated.answers("rtx-pro-6000-x8-lost", "bare", bus="0000:41:00.0 nvidia ffffffff 0 on DMA\n")
    both = [one for one in findings("box", probe.read_box(lost), None) if one.rule.startswith("card-")]
    assert "its PCI configuration reads ffffffff" in both[0].found
    assert [one.rule for one in both] == ["card-broken", "card-broken"]


@pytest.mark.pain("P101")
def test_unified_memory_is_the_machines_and_arm_is_told() -> None:
    box = described("gb10-x1", architecture="aarch64\n", memory_free="120000000\n")
    [(_, text)] = [line for line in card.lines(box, None, _choice()) if line[0] == "cards"]
    assert text == (
        "1 x NVIDIA GB10, memory shared with the CPU, as /proc/meminfo says, "
        "compute capability 12.1, PCIe 1 x1 (now 1 x1)"
    )
    assert any("aarch64" in line[1] and "no stack" in line[1] for line in card.lines(box, None, _choice()))
    facts = box.facts()
    assert facts.cards is not None
    assert facts.cards[0].memory_mib == 120000000 // 1024
    assert facts.architecture == "aarch64"
    [told] = [one for one in findings("box", box, None) if one.rule == "box-architecture"]
    assert "aarch64" in told.found


@pytest.mark.pain("P101")
def test_another_card_that_tells_no_memory_has_memory_that_is_not_known() -> None:
    row = GOOD[0].replace("143771", "[N/A]")
    [one] = listed(row).cards
    assert (one.memory_mib, one.shares_memory) == (None, False)
    facts = probe.read_facts({**simulated.answers("rtx-4090-x1-vm", "vm"), "cards": Answer(0, row)})
    assert facts.cards is not None
    assert facts.cards[0].memory_mib is None


@pytest.mark.pain("P91")
def test_the_deploys_facts_say_what_the_kernel_log_asks_for() -> None:
    line = (
        "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"
    )
    answers = simulated.answers("rtx-4090-x1-vm", "vm", kernel_log=line)
    assert [text[:38] for text in probe.read_facts(answers).recovery or []] == [
        "card 0000:01:00.0: reboot or power cyc"
    ]
    other = simulated.answers("rtx-4090-x1-vm", "vm", kernel_log=line.replace("0000:01:00", "0000:21:00"))
    assert probe.read_facts(other).recovery == []
    assert probe.read_facts(simulated.answers("rtx-4090-x1-vm", "vm")).recovery is None


@pytest.mark.pain("P90")
def test_the_holder_of_a_card_is_named_with_how_to_blacklist_it() -> None:
    no_driver = {"cards": Answer(9, "NVIDIA-SMI has failed"), "driver": Answer(1, "")}
    for driver in ("nova_core", "NovaCore", "nouveau"):
        changed = {**no_driver, "pci": Answer(0, f"0000:01:00.0 {driver}\n")}
        box = probe.read_box({**simulated.answers("rtx-4090-x1-vm", "vm"), **changed})
        [told] = [one for one in findings("box", box, None) if one.rule == "box-no-driver"]
        assert told.found.startswith(f"cards held by {driver}")
        assert "nova_core" in told.todo
        assert "update-initramfs" in told.todo


@pytest.mark.pain("P90")
def test_one_card_of_several_that_another_driver_took() -> None:
    box = described("rtx-4090-x1-vm", "vm", pci="0000:01:00.0 nvidia\n0000:02:00.0 NovaCore\n0000:03:00.0 vfio-pci\n")
    [told] = [one for one in findings("box", box, None) if one.rule == "card-holder"]
    assert told.found == "card 0000:02:00.0 is held by NovaCore"


def test_what_box_and_hypervisor_say_alike_is_told_once() -> None:
    gpus = described("rtx-pro-6000-x8-lost").gpus
    told = [*hardware.findings("box", [("box", gpus), ("hv", gpus)], container=True)]
    assert len([one for one in told if one.rule == "card-broken"]) == 2
