"""Which cards there are, and which a container gets."""

import pytest

from gpubox.hypervisor.cards import Card, Wanted, choose, pci, present, refuse_shared
from gpubox.support.errors import GpuboxError


def _information(address: str, minor: int, uuid: str) -> str:
    return (
        f"Model: \t\t NVIDIA RTX PRO 6000 Blackwell Server Edition\nIRQ:   \t\t 41\nGPU UUID: \t {uuid}\n"
        f"Bus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n"
    )


# minors are given in the order of probing, indices by address: here they differ
INFORMATION = _information("0000:c1:00.0", 0, "GPU-aa") + _information("0000:01:00.0", 1, "GPU-bb")
PCI = "0000:01:00.0 nvidia\n0000:41:00.0 vfio-pci\n0000:81:00.0 -\n0000:c1:00.0 nvidia\n"
CARDS = present(INFORMATION, PCI)
MODEL = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
FIRST = Card("0000:01:00.0", "nvidia", 0, 1, "GPU-bb", MODEL)
LAST = Card("0000:c1:00.0", "nvidia", 1, 0, "GPU-aa", MODEL)


def test_cards_of_all_drivers_by_address() -> None:
    assert [FIRST, Card("0000:41:00.0", "vfio-pci"), Card("0000:81:00.0", None), LAST] == CARDS
    assert present("", "") == []


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("all", [FIRST, LAST]),
        ([0], [FIRST]),
        (["1"], [LAST]),
        (["gpu-AA", "01:00.0"], [LAST, FIRST]),
        (["00000000:C1:00.0"], [LAST]),
        ([], []),
    ],
)
def test_chosen(wanted: Wanted, chosen: list[Card]) -> None:
    assert choose(CARDS, wanted) == chosen


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([2], "there is no card 2\n.*one of: card 0 .0000:01:00.0. GPU-bb nvidia; card - .0000:41:00.0. vfio-pci"),
        (["GPU-cc"], "no card GPU-cc"),
        ([0, "01:00.0"], "01:00.0 names card 0 .0000:01:00.0., which is named already"),
        (["41:00.0"], "held by the driver vfio-pci"),
        (["0000:81:00.0"], "held by no driver"),
    ],
)
@pytest.mark.pain("P16")
def test_wrong_wish_names_the_card(wanted: Wanted, message: str) -> None:
    with pytest.raises(GpuboxError, match=message):
        choose(CARDS, wanted)


@pytest.mark.pain("P16")
def test_no_card_at_all_is_an_error() -> None:
    with pytest.raises(GpuboxError, match="no card is held by the nvidia driver"):
        choose(present("", "0000:41:00.0 vfio-pci\n"), "all")


def test_a_card_in_two_containers_is_named_with_both() -> None:
    with pytest.raises(GpuboxError, match=r"card 1 .0000:c1:00\.0. is given to both a and c"):
        refuse_shared("a", [FIRST, LAST], {"b": [], "c": [LAST]})
    refuse_shared("a", [FIRST], {"c": [LAST]})


@pytest.mark.parametrize(("text", "address"), [("01:00.0", "0000:01:00.0"), ("GPU-aa", ""), ("3", ""), ("01:00.9", "")])
def test_pci(text: str, address: str) -> None:
    assert pci(text) == address
