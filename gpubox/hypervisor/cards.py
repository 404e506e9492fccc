"""Which cards a machine has, and which of them a container gets."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from gpubox.support.errors import GpuboxError
from gpubox.support.reading import reader

Wanted = Literal["all"] | Sequence[int | str]

# display devices (class 0x03....) whose vendor is NVIDIA, with the driver that holds each
LIST = """for d in /sys/bus/pci/devices/*; do case $(cat "$d/vendor")$(cat "$d/class") in 0x10de0x03*)
driver=-; [ ! -e "$d/driver" ] || driver=$(basename "$(readlink -f "$d/driver")")
echo "${d##*/} $driver";; esac; done"""
"""Shell text that prints what `present` reads as `pci_drivers`."""


@dataclass(frozen=True)
class Card:
    """A card. `index` is its place by PCI address among those of the nvidia driver, as nvidia-smi counts."""

    pci: str
    """As 0000:01:00.0."""
    driver: str | None
    """The kernel driver that holds it: nvidia, vfio-pci, ...; None: none."""
    index: int | None = None
    minor: int | None = None
    """Number of its node /dev/nvidiaN, which need not be its index; None: the nvidia driver does not hold it."""
    uuid: str | None = None
    model: str = ""
    """As NVIDIA RTX PRO 6000 Blackwell Server Edition; empty: not known."""

    @override
    def __str__(self) -> str:
        return f"card {self.index if self.index is not None else '-'} ({self.pci})"


@reader("cards of the driver and on the PCI bus")
def present(information: str, pci_drivers: str) -> list[Card]:
    """The cards by PCI address.

    `information`: the files /proc/driver/nvidia/gpus/*/information, one after the other.
    `pci_drivers`: lines `ADDRESS DRIVER` (DRIVER `-`: none) of the PCI display devices whose vendor is NVIDIA.
    """
    told = sorted((_fields(text) for text in re.split(r"(?m)^(?=Model:)", information)), key=lambda card: card["pci"])
    ours = [
        Card(card["pci"], "nvidia", index, int(card["minor"]), card["uuid"], card["model"])
        for index, card in enumerate(card for card in told if card["pci"])
    ]
    known = {card.pci for card in ours}
    others = _on_the_bus(pci_drivers)
    return sorted([*ours, *(card for card in others if card.pci not in known)], key=lambda card: card.pci)


def choose(cards: Sequence[Card], wanted: Wanted) -> list[Card]:
    """The cards that `wanted` names: `all` that the nvidia driver holds, or indices, UUIDs, PCI addresses.

    Errors: no such card, one named twice, one that another driver (vfio-pci: a VM's) holds, none at all.
    """
    if wanted == "all":
        chosen = [card for card in cards if card.minor is not None]
        if not chosen:
            raise GpuboxError("no card is held by the nvidia driver", "at least one", _listed(cards))
        return chosen
    chosen = []
    for name in wanted:
        card = _named(cards, name)
        if card in chosen:
            raise GpuboxError(f"gpus: {name} names {card}, which is named already", "each card once")
        chosen.append(card)
    return chosen


def refuse_shared(container: str, chosen: Sequence[Card], others: Mapping[str, Sequence[Card]]) -> None:
    """Error when a chosen card is also given to one of the `others` (container -> its cards)."""
    for other, theirs in others.items():
        for card in chosen:
            if card in theirs:
                raise GpuboxError(
                    f"{card} is given to both {container} and {other}",
                    "one container for each card",
                    "set gpus of each to different cards, or gpus_shared = True on both",
                )


def pci(address: str) -> str:
    """A PCI address in the kernel's form: 01:00.0 and nvidia-smi's 00000000:01:00.0 are 0000:01:00.0."""
    found = re.fullmatch(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", address.strip().lower())
    if found is None:
        return ""
    return f"{int(found.group(1) or '0', 16):04x}:{found.group(2)}:{found.group(3)}.{found.group(4)}"


@reader("display devices on the PCI bus")
def _on_the_bus(pci_drivers: str) -> list[Card]:
    """From lines `ADDRESS DRIVER`, each of which names a device."""
    pairs = [line.split() for line in pci_drivers.splitlines() if line.strip()]
    found = [Card(pci(address), None if driver == "-" else driver) for address, driver in pairs]
    if any(not card.pci for card in found):
        raise ValueError("no PCI address")
    return found


def _fields(text: str) -> dict[str, str]:
    values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    minor = values.get("Device Minor", "")
    return {
        "pci": pci(values.get("Bus Location", "")) if minor.isdigit() else "",
        "minor": minor,
        "uuid": values.get("GPU UUID", ""),
        "model": values.get("Model", ""),
    }


def _named(cards: Sequence[Card], name: int | str) -> Card:
    found = next((card for card in cards if _is(card, name)), None)
    if found is None:
        raise GpuboxError(f"gpus: there is no card {name}", _listed(cards))
    if found.minor is None:
        holder = f"the driver {found.driver}" if found.driver else "no driver"
        raise GpuboxError(
            f"gpus: {name} is {found}, which is held by {holder}",
            "the nvidia driver: a card serves containers or, with vfio-pci, one VM, never both",
            f"take it from the VM (qm set ID --delete hostpciN) and bind it to nvidia, or leave {name} out of gpus",
        )
    return found


def _is(card: Card, name: int | str) -> bool:
    if isinstance(name, int) or name.isdigit():
        return card.index == int(name)
    return card.pci == pci(name) or (card.uuid or "").lower() == name.lower()


def _listed(cards: Iterable[Card]) -> str:
    lines = [f"{card} {card.uuid or ''} {card.driver or 'no driver'}".replace("  ", " ") for card in cards]
    return f"one of: {'; '.join(lines)}" if lines else "this machine has no NVIDIA card that the kernel shows"
