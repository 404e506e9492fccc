"""What nvidia-smi lists, each value of each card read by itself: one that is broken does not hide the others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubox.driver import nvml
from gpubox.driver.nvml import Cell
from gpubox.facts.answers import Answer
from gpubox.hypervisor.cards import pci
from gpubox.onboard import questions
from gpubox.onboard.state import BrokenCard, Card

_FIELDS = 11
"""Values of a row at least; older stand-ins and recordings lack the temperature."""
_SHARE_MEMORY = re.compile(r"\b(GB10|GB10B|N1X?|Thor|Orin|Xavier|Tegra)\b", re.I)
"""Cards that have no memory of their own: DGX Spark and its relatives, Jetson."""
_HANDLE = re.compile(r"device handle for GPU\s*(?:\d+:\s+)?(?P<pci>[0-9a-f]{3,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.I)


@dataclass(frozen=True)
class Listed:
    """What nvidia-smi said."""

    cards: list[Card]
    broken: list[BrokenCard]
    trouble: str
    """What it said instead of the list, in its own words; empty: it lists cards."""


def read(answer: Answer, numa: Mapping[str, int], on_bus: Sequence[str]) -> Listed:
    """The answer to the question `cards` of gpubox.onboard.questions.

    + numa: PCI address -> NUMA node
    + on_bus: lines `ADDRESS DRIVER` of the NVIDIA cards that the PCI bus shows
    """
    rows, said = [], []
    for line in answer.text.splitlines():
        if line.count(",") >= _FIELDS - 1:
            rows.append([nvml.cell(text) for text in line.split(",")])
        elif line.strip():
            said.append(line.strip())
    cards, broken = [], []
    for place, cells in enumerate(rows):
        if words := [cell.said for cell in cells if cell.broken]:
            broken.append(_broken(place, cells, words[0]))
        else:
            cards.append(_card(place, cells, numa))
    broken += _named([line for line in said if "device handle" in line], cards, broken)
    broken = _placed(broken, cards, on_bus)
    trouble = "" if cards else _trouble(answer, said, broken)
    return Listed(cards, broken, trouble)


def _card(place: int, cells: Sequence[Cell], numa: Mapping[str, int]) -> Card:
    index, uuid, name, capability, memory, power, address = (cell.value for cell in cells[:7])
    temperature = cells[_FIELDS].value if len(cells) > _FIELDS else None
    at = pci(address or "")
    node = numa.get(at, -1)
    mib = _number(memory)
    return Card(
        index=int(index) if index and index.isdigit() else place,
        uuid=uuid or "",
        name=name or "",
        compute_capability=capability,
        memory_mib=int(mib) if mib else None,
        power_limit_w=_number(power),
        pci=at,
        pcie_generation=_pair(cells[7].value, cells[8].value),
        pcie_width=_pair(cells[9].value, cells[10].value),
        numa=node if node >= 0 else None,
        shares_memory=not mib and bool(_SHARE_MEMORY.search(name or "")),
        temperature_c=_number(temperature),
        unknown=_unknown(cells),
    )


def _unknown(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Words in place of values that are in no table, each with the value's name."""
    named = zip(questions.CARD_FIELDS.split(","), cells, strict=False)
    return tuple(
        f"{name} [{cell.said}]" for name, cell in named if cell.said and not nvml.field_meaning(cell.said).known
    )


def _broken(place: int, cells: Sequence[Cell], said: str) -> BrokenCard:
    index, address = cells[0].value, cells[6].value
    return BrokenCard(int(index) if index and index.isdigit() else place, pci(address or ""), said)


def _named(lines: Sequence[str], cards: Sequence[Card], broken: Sequence[BrokenCard]) -> list[BrokenCard]:
    """Cards that a message names and no row shows."""
    known = {card.pci for card in cards} | {card.pci for card in broken}
    found = []
    for line in lines:
        match = _HANDLE.search(line)
        at = pci(match["pci"]) if match else ""
        if not at or at not in known:
            found.append(BrokenCard(None, at, line))
    return found


def _placed(broken: Sequence[BrokenCard], cards: Sequence[Card], on_bus: Sequence[str]) -> list[BrokenCard]:
    """A broken card without an address is the one that the bus shows and nvidia-smi does not, where there is one."""
    known = {card.pci for card in cards} | {card.pci for card in broken}
    held = [words[0] for words in (line.split() for line in on_bus) if len(words) == 2 and words[1] == "nvidia"]
    left = [address for address in held if pci(address) not in known]
    nameless = [card for card in broken if not card.pci]
    if len(left) != 1 or len(nameless) != 1:
        return list(broken)
    return [card if card.pci else BrokenCard(card.index, pci(left[0]), card.said) for card in broken]


def _trouble(answer: Answer, said: Sequence[str], broken: Sequence[BrokenCard]) -> str:
    if answer.rc == 127:
        return "nvidia-smi is not there"
    if said:
        return " ".join(" ".join(said).split())
    if broken:
        return f"no card answers: {broken[0].said}"
    return f"nvidia-smi ended with {answer.rc}" if answer.rc else "nvidia-smi lists no cards"


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d+(\.\d+)?", text) else None


def _pair(highest: str | None, current: str | None) -> tuple[int, int] | None:
    if not highest or not current or not highest.isdigit() or not current.isdigit():
        return None
    return int(highest), int(current)
