"""NVIDIA cards as the PCI bus sees them, whichever driver holds them: one that is gone, one that a VM may lose.

Evidence: NVIDIA/open-gpu-kernel-modules#853 (a card that does not come back from the reset at its VM's end).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpubox.support.reading import reader

# reading the first four bytes of the configuration wakes a sleeping card; one that is gone reads as ones
LIST = """for d in /sys/bus/pci/devices/*; do case $(cat "$d/vendor")$(cat "$d/class") in 0x10de0x03*)
driver=-; [ ! -e "$d/driver" ] || driver=$(basename "$(readlink -f "$d/driver")")
first=$(od -An -tx1 -N4 "$d/config" | tr -d ' '); d3cold=$(cat "$d/d3cold_allowed"); control=$(cat "$d/power/control")
iommu=$(cat "$d/iommu_group/type"); echo "${d##*/} $driver ${first:--} ${d3cold:--} ${control:--} ${iommu:-off}";; esac
done"""
"""Shell text that prints what `parse` reads."""


@dataclass(frozen=True)
class Slot:
    """A card's place on the bus."""

    pci: str
    driver: str
    """`-`: none."""
    answers: bool
    d3cold: bool
    """The kernel may take its power away while nobody uses it."""
    sleeps: bool
    """The kernel may put it to sleep while nobody uses it (power/control is `auto`)."""
    iommu: str
    """Type of its IOMMU group: `identity`, `DMA`, `DMA-FQ`, ...; `off`: it is in none."""


@reader("cards on the bus")
def parse(listing: str) -> list[Slot]:
    """Slots from lines `ADDRESS DRIVER FIRST-FOUR-BYTES D3COLD CONTROL IOMMU`; `-`: cannot be read."""
    rows = (line.split() for line in listing.splitlines() if line.strip())
    return [
        Slot(address, driver, first != "ffffffff", d3cold == "1", control == "auto", iommu)
        for address, driver, first, d3cold, control, iommu in rows
    ]


def gone(slots: Sequence[Slot]) -> list[str]:
    """One line for each card that the kernel lists and that no longer answers."""
    return [
        f"card {slot.pci} does not answer on the bus: its link went down, or it did not come back from a reset; "
        "only a reboot of this machine, or taking its power away, brings it back"
        for slot in slots
        if not slot.answers
    ]


def at_risk(slots: Sequence[Slot]) -> list[str]:
    """One line for each VM's card that may sleep: from there some Blackwell cards do not come back."""
    return [
        f"card {slot.pci} is a VM's and may sleep: it may be lost when the VM ends; keep it awake from boot on: "
        "0 into d3cold_allowed and on into power/control of its folder in /sys/bus/pci/devices"
        for slot in slots
        if slot.driver == "vfio-pci" and slot.answers and (slot.d3cold or slot.sleeps)
    ]
