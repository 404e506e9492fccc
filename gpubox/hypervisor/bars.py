"""The memory windows (BARs) that firmware and kernel gave each card: one card of equal ones without its window.

Evidence: NVIDIA/open-gpu-kernel-modules#510 and #1109, aikitoria/open-gpu-kernel-modules#9.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpubox.support.reading import reader

# a line of `resource` is START END FLAGS, one for each window; the second is the one through which a card's memory is
# seen. A window that got no address has the flag IORESOURCE_UNSET (0x20000000), or is all zeros.
QUESTION = """for d in /sys/bus/pci/devices/*; do case $(cat "$d/vendor")$(cat "$d/class") in 0x10de0x03*)
echo "${d##*/} $(cat "$d/device") $(sed -n 2p "$d/resource")";; esac; done"""
"""Shell text that prints what `parse` reads."""
_UNSET = 0x20000000
_GIB = 1 << 30
CURE = (
    "in the machine's firmware: Above 4G Decoding and Resizable BAR on, the largest MMIO size that it offers; "
    "else pci=realloc on the kernel's command line (kernel_command_line of the hypervisor's data)"
)


@dataclass(frozen=True)
class Bars:
    """One card's window to its memory."""

    pci: str
    device: str
    """The kind of card, as the bus numbers it: 0x2bb5."""
    size: int | None
    """Bytes of its second window (BAR1); None: it got none."""


@reader("windows of cards")
def parse(listing: str) -> list[Bars]:
    """Windows from lines `ADDRESS DEVICE START END FLAGS`; a line of another form is left out."""
    found = []
    for line in listing.splitlines():
        words = line.split()
        if len(words) != 5:
            continue
        try:
            start, end, flags = (int(word, 16) for word in words[2:])
        except ValueError:
            continue
        given = end > start and not flags & _UNSET
        found.append(Bars(words[0], words[1], end - start + 1 if given else None))
    return found


def odd(bars: Sequence[Bars]) -> list[str]:
    """One line for each card that has no window, or a smaller one than cards of the same kind."""
    lines = []
    for card in bars:
        if card.size is None:
            lines.append(f"card {card.pci} got no memory window (BAR1): the driver cannot use it")
            continue
        equal = [other.size for other in bars if other.device == card.device and other.size is not None]
        usual, _ = max(Counter(equal).items(), key=lambda item: (item[1], item[0]))
        if card.size < usual:
            small, large = _text(card.size), _text(usual)
            lines.append(f"card {card.pci} has a memory window (BAR1) of {small}, equal cards have {large}")
    return lines


def _text(size: int) -> str:
    return f"{size / _GIB:.0f} GiB" if size >= _GIB else f"{size >> 20} MiB"
