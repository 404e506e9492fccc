"""Power limits and clocks of the cards: what the data asks for, what each card has, and the files
that keep it so.

The driver forgets both when it is loaded anew, so at each boot (olafkfreund/nixos_config#1396), and
a command for all cards at once ends at the first that refuses. So a oneshot repeats them for each
card, known by its UUID or PCI address.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override

from gpubox.hypervisor.cards import pci
from gpubox.settings.host import CardLimit
from gpubox.support.reading import reader
from gpubox.support.templates import render

UNIT = "gpubox-card-limits.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
SCRIPT = "/usr/local/sbin/gpubox-card-limits"
UDEV_RULES = "/etc/udev/rules.d/71-gpubox-card-limits.rules"
FILES = (SCRIPT, UNIT_FILE, UDEV_RULES)

FIELDS = (
    "uuid,pci.bus_id,name,power.limit,power.default_limit,power.min_limit,power.max_limit,"
    "clocks.current.graphics,clocks.current.memory"
)
QUESTION = f"nvidia-smi --query-gpu={FIELDS} --format=csv,noheader,nounits 2>&1"
"""Shell text whose output `parse` reads. Locked clocks themselves are told by no field of
nvidia-smi."""

_TOLERANCE_W = 0.5
"""nvidia-smi prints hundredths of a watt; a limit is set in whole ones."""
_TOLERANCE_MHZ = 15
"""Clocks move in steps of up to 15 MHz, and a lock is rounded to one."""


@dataclass(frozen=True)
class LimitedCard:
    """A card's limits as they are now. None: the card does not say (`[N/A]`), so it cannot be
    limited so."""

    uuid: str
    pci: str
    """As 0000:c1:00.0."""
    name: str
    power_w: float | None
    default_w: float | None
    lowest_w: float | None
    highest_w: float | None
    graphics_mhz: float | None
    """The clock at this moment."""
    memory_mhz: float | None

    @override
    def __str__(self) -> str:
        """For people."""
        return f"card {self.uuid} ({self.pci})"


@reader("limits of cards")
def parse(text: str) -> list[LimitedCard]:
    """What QUESTION printed. Lines that are no card's (warnings of nvidia-smi) are passed over."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    return [_card(row) for row in rows if len(row) == len(FIELDS.split(",")) and row[0].startswith("GPU-")]


def limit_of(limits: Mapping[str, CardLimit], uuid: str, address: str) -> CardLimit | None:
    """What is asked of one card: its own entry's values, and those of `all` where it has none."""
    own = next((limit for name, limit in limits.items() if is_named(name, uuid, address)), None)
    every = limits.get("all")
    if own is None or every is None:
        return own or every
    mine = own.model_dump(exclude_none=True)
    return CardLimit.model_validate({**every.model_dump(exclude_none=True), **mine})


def is_named(name: str, uuid: str, address: str) -> bool:
    """Whether an entry's name is that of this card."""
    return name.lower() == uuid.lower() or (bool(pci(name)) and pci(name) == pci(address))


def refused(limits: Mapping[str, CardLimit], cards: Sequence[LimitedCard]) -> list[str]:
    """What the cards cannot be asked for: no such card, no such setting, a limit outside of the
    card's own range."""
    strange = [
        f"there is no card {name} (cards here: {', '.join(str(card) for card in cards) or 'none'})"
        for name in limits
        if name != "all" and not any(is_named(name, card.uuid, card.pci) for card in cards)
    ]
    return strange + [line for card in cards for line in _refused(limit_of(limits, card.uuid, card.pci), card)]


def drift(limits: Mapping[str, CardLimit], cards: Iterable[LimitedCard]) -> list[str]:
    """Where a card has another limit now than the data says; a clock above its highest shows
    that its lock is gone."""
    return [line for card in cards for line in _drift(limit_of(limits, card.uuid, card.pci), card)]


def loosening(limits: Mapping[str, CardLimit], cards: Iterable[LimitedCard]) -> list[list[str]]:
    """nvidia-smi's words that give cards back what an earlier version of the data took from
    them."""
    found = []
    for card in cards:
        limit = limit_of(limits, card.uuid, card.pci)
        free_power = limit is None or limit.power_w is None
        if free_power and card.default_w is not None and card.power_w != card.default_w:
            found.append(["-i", card.uuid, "-pl", f"{card.default_w:.0f}"])
        if limit is None or limit.graphics_clocks_mhz is None:
            found.append(["-i", card.uuid, "-rgc"])
        if limit is None or limit.memory_clocks_mhz is None:
            found.append(["-i", card.uuid, "-rmc"])
    return found


def texts(limits: Mapping[str, CardLimit]) -> dict[str, str]:
    """Path -> text of the files that set the limits at each boot and each load of the driver."""
    names = [name for name in limits if name != "all"]
    rows = [(_pattern(name), _words(limit_of(limits, name, name))) for name in sorted(names)]
    return {
        SCRIPT: render("card-limits.sh.j2", rows=rows, others=_words(limits.get("all"))),
        UNIT_FILE: render("card-limits.service.j2", script=SCRIPT),
        UDEV_RULES: render("card-limits.rules.j2", unit=UNIT),
    }


def _card(row: Sequence[str]) -> LimitedCard:
    uuid, address, name, *numbers = row
    power, default, lowest, highest, graphics, memory = (_number(text) for text in numbers)
    return LimitedCard(uuid, pci(address), name, power, default, lowest, highest, graphics, memory)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # [N/A], [Not Supported], [GPU is lost], [Unknown Error]
        return None


def _refused(limit: CardLimit | None, card: LimitedCard) -> list[str]:
    if limit is None:
        return []
    found = []
    if limit.power_w is not None and card.power_w is None:
        found.append(f"{card} has no power limit that can be set (nvidia-smi says no number for power.limit)")
    elif limit.power_w is not None and not _within(limit.power_w, card.lowest_w, card.highest_w):
        found.append(f"{card}: power_w is {limit.power_w}, it allows {card.lowest_w} to {card.highest_w}")
    if limit.graphics_clocks_mhz is not None and card.graphics_mhz is None:
        found.append(f"{card} says no graphics clock, so its clocks cannot be locked")
    if limit.memory_clocks_mhz is not None and card.memory_mhz is None:
        found.append(f"{card} says no memory clock, so its clocks cannot be locked")
    return found


def _within(value: int, lowest: float | None, highest: float | None) -> bool:
    return (lowest is None or value >= lowest) and (highest is None or value <= highest)


def _drift(limit: CardLimit | None, card: LimitedCard) -> list[str]:
    if limit is None:
        return []
    found = []
    if limit.power_w is not None and not _is_close(card.power_w, limit.power_w):
        found.append(f"{card}: power limit {_shown(card.power_w)} W, the data says {limit.power_w} W")
    for what, now, clocks in (
        ("graphics", card.graphics_mhz, limit.graphics_clocks_mhz),
        ("memory", card.memory_mhz, limit.memory_clocks_mhz),
    ):
        if now is not None and clocks is not None and now > clocks[1] + _TOLERANCE_MHZ:
            found.append(f"{card}: {what} clock {now:.0f} MHz, the data says at most {clocks[1]} MHz")
    return found


def _is_close(now: float | None, wanted: int) -> bool:
    return now is not None and abs(now - wanted) <= _TOLERANCE_W


def _shown(watts: float | None) -> str:
    return "of unknown" if watts is None else f"{watts:g}"


def _pattern(name: str) -> str:
    """The shell pattern for a line `UUID ADDRESS` of the script, both in lower case."""
    address = pci(name)
    return f"*' {address}'" if address else f"'{name.lower()} '*"


def _words(limit: CardLimit | None) -> str:
    """Watts, graphics and memory clocks for the script; `-`: as it is."""
    if limit is None:
        return "- - -"
    clocks = [
        "-" if pair is None else f"{pair[0]},{pair[1]}" for pair in (limit.graphics_clocks_mhz, limit.memory_clocks_mhz)
    ]
    return " ".join(["-" if limit.power_w is None else str(limit.power_w), *clocks])
