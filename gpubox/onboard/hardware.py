"""What cards, PCI bus, firmware and kernel log say of themselves, whatever is to be served there."""

from collections.abc import Iterator, Sequence

from gpubox.driver import kernel_log, nvml
from gpubox.hypervisor import bars, boots, holders, secure_boot
from gpubox.onboard.state import BrokenCard, Gpus
from gpubox.rules.finding import Finding, Severity

_SEEN = ("seen on the machine itself",)
View = tuple[str, Gpus]
"""A machine's name, and the cards as it sees them."""


def findings(host: str, views: Sequence[View], container: bool) -> Iterator[Finding]:
    """What is wrong with the cards of a box; what two machines say alike is told once.

    + host: the box that is judged
    + views: the box's own view first, then that of its hypervisor, where it has one that was looked at
    + container: the box's own end is not its machine's
    """
    told: set[tuple[str, str]] = set()
    for machine, seen in views:
        for finding in of_cards(host, machine, seen):
            if (finding.rule, finding.found) not in told:
                told.add((finding.rule, finding.found))
                yield finding
    if container and len(views) < 2:
        return
    machine, seen = views[-1]
    inside = views[0][1] if len(views) > 1 else None
    yield from _resets(host, machine, seen, inside)


def of_cards(host: str, machine: str, seen: Gpus) -> Iterator[Finding]:
    """What one machine's view of its cards shows.

    + host: the box that is judged
    + machine: whose view it is
    """
    yield from _silent_cards(host, seen)
    for card in seen.cards:
        if card.unknown:
            found = f"card {card.index}: {', '.join(card.unknown)}: {nvml.NOT_KNOWN}"
            yield _finding("card-value", "unknown", host, found, "values that nvidia-smi tells", nvml.UNKNOWN_CURE)
    if seen.driver is not None:
        for address, driver in holders.foreign(seen.pci):
            found = f"card {address} is held by {driver}"
            yield _finding("card-holder", "error", host, found, "the NVIDIA driver", holders.cure(driver))
    for line in bars.odd(seen.bars):
        yield _finding("card-window", "warning", host, line, "equal windows for equal cards", bars.CURE)
    refused = secure_boot.warning(seen.secure_boot, seen.driver is not None or bool(seen.pci))
    if refused:
        yield _finding("secure-boot", "warning", host, f"{machine}: {refused}", "a module that the firmware lets in")
    for event in kernel_log.worst(seen.kernel_log.events):
        severity: Severity = "error" if event.status == "fail" and _matters(event, seen) else "warning"
        found = f"{machine}: {event.found}{_temperature(event, seen)}"
        yield _finding("kernel-log", severity, host, found, "", event.cure)


def _silent_cards(host: str, seen: Gpus) -> Iterator[Finding]:
    for card in seen.broken:
        yield _broken(host, card, seen)
    known = {card.pci for card in seen.broken}
    for slot in seen.slots:
        if slot.answers or slot.pci in known:
            continue
        found = f"card {slot.pci} does not answer on the PCI bus: its configuration reads ffffffff"
        cure = kernel_log.table().actions["reboot"].cure
        yield _finding("card-gone", "error", host, found, "a card that answers", cure)


def _broken(host: str, card: BrokenCard, seen: Gpus) -> Finding:
    told = nvml.field_meaning(card.said)
    if not told.known:
        told = nvml.explain(card.said)
    gone = any(slot.pci == card.pci and not slot.answers for slot in seen.slots)
    bus_says = "; its PCI configuration reads ffffffff" if gone else ""
    found = f"{card.label} is broken: {told.found} ({told.cause}){bus_says}; its other values are not known"
    return _finding("card-broken", "error", host, found, "a card that answers", told.cure)


def _temperature(event: kernel_log.Event, seen: Gpus) -> str:
    """Heat is a usual cause, and the card's maker asks for it."""
    degrees = next((card.temperature_c for card in seen.cards if card.pci == event.pci), None)
    return "" if degrees is None or not event.pci else f" (the card is at {degrees:.0f} °C now)"


def _matters(event: kernel_log.Event, seen: Gpus) -> bool:
    """An old line of a card that answers again, or of a driver that works by now, is history."""
    if event.id == "xid-154":
        return True
    answering = {card.pci for card in seen.cards}
    return event.pci not in answering if event.pci else not seen.cards


def _resets(host: str, machine: str, seen: Gpus, inside: Gpus | None) -> Iterator[Finding]:
    ended, box = boots.parse(seen.boots), boots.parse(inside.boots) if inside else []
    if not boots.while_serving(ended, box):
        return
    for line in boots.resets(machine, ended, box):
        yield _finding("machine-reset", "warning", host, line, "boots that end with a shutdown", boots.CURE)


def _finding(rule: str, severity: Severity, host: str, found: str, needed: str, todo: str = "") -> Finding:
    return Finding(rule, severity, host, found, needed, todo, _SEEN)
