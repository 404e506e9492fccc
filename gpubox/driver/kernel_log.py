"""The kernel log of a machine with cards: Xids, SXids and other lines, each with meaning and cure (kernel_log.yaml)."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from gpubox.support import known_texts
from gpubox.support.data import Model
from gpubox.support.known_texts import KnownText
from gpubox.support.reading import reader

Status = Literal["pass", "warn", "fail"]
Recovery = Literal["nothing", "drain", "reset", "reboot"]

# the journal first: a busy machine's ring buffer has lost the boot. A container's own journal has no kernel lines.
_INTERESTING = (
    "NVRM|nvidia|SXid|nouveau|nova|BAR|bridge window|rejected|Lockdown|AER|pcieport|pciehp|"
    "Out of memory|oom-kill|DMAR|AMD-Vi|IO_PAGE_FAULT|request_free_mem_region|uvm"
)
QUESTION = f"""l=$(journalctl -k -b -q --no-pager -o short-iso -n 5000)
[ -n "$l" ] || l=$(dmesg 2>&1) || {{ printf '%s\\n' "$l" | tail -n1; exit 1; }}
[ -n "$l" ] || {{ echo 'no kernel log here'; exit 1; }}
printf '%s\\n' "$l" | grep -aE '{_INTERESTING}' | tail -n 400; exit 0"""
"""Shell text: exit code 0 and the lines that may matter, or 1 and why the log may not be read."""
_XID = re.compile(
    r"(?P<switch>nvidia-nvswitch\S*: )?(?:NVRM: )?(?P<kind>S?Xid) \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)[^)]*\): "
    r"(?P<number>\d+)(?:,\s*(?P<rest>.*))?"
)
_PCI = re.compile(r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.I)
NOT_KNOWN = "gpubox does not know this number"


class Action(Model):
    """A first measure."""

    status: Status
    cure: str


class Xid(Model):
    """One number."""

    meaning: str
    action: str
    """Key of `actions`."""
    more: str = ""
    source: str = ""
    """Where it is not the catalogue's."""


class Asked(Model):
    """Words of Xid 154."""

    pattern: str
    asks: Recovery


class Line(KnownText):
    """Another line of the log."""

    status: Status
    recovery: bool = False
    """The card is not to be used again before its machine was rebooted."""


class Table(Model):
    """The whole file."""

    source: str
    actions: dict[str, Action]
    xids: dict[int, Xid]
    recoveries: list[Asked]
    lines: list[Line]


@dataclass(frozen=True)
class Event:
    """One thing that the log says of one card, however often."""

    id: str
    """`xid-79`, `sxid-20034`, or the id of a line."""
    pci: str
    """As 0000:c1:00.0; empty: the line names none."""
    text: str
    """The last such line."""
    status: Status
    meaning: str
    cure: str
    source: str
    recovery: Recovery = "nothing"
    """What has to be done before the card is used again."""
    count: int = 1

    @property
    def found(self) -> str:
        """For people: what, which card, how often, the line itself."""
        kind, _, number = self.id.partition("-")
        name = {"xid": f"Xid {number}", "sxid": f"SXid {number}"}.get(kind, "")
        card = f"card {self.pci}" if self.pci else ""
        often = f"{self.count} times" if self.count > 1 else ""
        lead = ", ".join(word for word in (card, name, often) if word)
        return f"{lead}: {self.meaning}; {self.text}" if lead else f"{self.meaning}; {self.text}"


@dataclass(frozen=True)
class KernelLog:
    """A machine's kernel log, as far as it may be read."""

    events: list[Event] = field(default_factory=list)
    readable: bool = False
    why: str = ""
    """Why it is not."""


@cache
def table() -> Table:
    """The table of kernel_log.yaml."""
    return known_texts.load(Table, Path(__file__).with_suffix(".yaml"))


@reader("the kernel log")
def parse(code: int, text: str) -> KernelLog:
    """From what QUESTION printed, and its exit code."""
    if code != 0:
        return KernelLog(readable=False, why=" ".join(text.split()) or "no kernel log here")
    return KernelLog(events(text.splitlines()), readable=True)


def events(lines: Iterable[str]) -> list[Event]:
    """What the lines say of cards, each thing once, in the order in which it was last said."""
    found: dict[tuple[str, str], Event] = {}
    for line in lines:
        event = _event(line)
        if event is None:
            continue
        key = (event.id, event.pci)
        before = found.pop(key, None)  # put at the end: the order is that of the last one
        count = before.count + 1 if before else 1
        found[key] = Event(**{**event.__dict__, "count": count})
    return list(found.values())


def recovery(
    found: Sequence[Event], cards: Collection[str] | None = None, answering: Collection[str] = ()
) -> list[str]:
    """What has to be done before cards are used again, a line a card; empty: nothing.

    The last word of Xid 154 counts: it may say that nothing is needed any more.

    + cards: PCI addresses of those that matter; None: all
    + answering: those that nvidia-smi reads: they came back, if they were lost; what 154 asks for stays
    """
    lines: dict[str, str] = {}
    for event in found:
        if cards is not None and event.pci and event.pci not in cards:
            continue
        if event.id != "xid-154" and event.pci in answering:
            continue
        name = f"card {event.pci or '(the log does not say which)'}"
        if event.recovery == "reboot":
            lines[event.pci] = f"{name}: reboot or power cycle its machine: {event.text}"
        elif event.recovery == "reset":
            lines.setdefault(event.pci, f"{name}: reset it, or reboot its machine: {event.text}")
    return list(lines.values())


def worst(found: Iterable[Event]) -> list[Event]:
    """Those that ask for something, the worst first."""
    order: list[Status] = ["fail", "warn"]
    return sorted((event for event in found if event.status in order), key=lambda event: order.index(event.status))


def _event(line: str) -> Event | None:
    match = _XID.search(line)
    if match is None:
        return _other(line)
    pci, number = _address(match["pci"]), int(match["number"])
    text = line[match.start() :].strip()
    if match["kind"] == "SXid":
        return _switch(pci, number, text)
    if number == 154:
        return _asked(pci, text, match["rest"] or "")
    known = table().xids.get(number)
    if known is None:
        cure = "NVIDIA's catalogue of Xids, and what stands beside it in the log"
        return Event(f"xid-{number}", pci, text, "warn", NOT_KNOWN, cure, table().source)
    action = table().actions[known.action]
    cure = " ".join(f"{action.cure} {known.more}".split())
    needs: Recovery = "reboot" if known.action == "reboot" and number == 79 else "nothing"
    source = known.source or table().source
    return Event(f"xid-{number}", pci, text, action.status, known.meaning, cure, source, needs)


def _asked(pci: str, text: str, rest: str) -> Event:
    """Xid 154: the driver's own word on what the card needs now; what is said after `to` counts."""
    now = rest[rest.find(" to ") :] if " to " in rest else rest
    asks = next((known.asks for known in table().recoveries if re.search(known.pattern, now)), None)
    source = table().source
    if asks is None:
        meaning = f"the driver asks for something that gpubox does not know: {now.strip() or text}"
        return Event("xid-154", pci, text, "warn", meaning, "NVIDIA's catalogue of Xids", source)
    if asks == "nothing":
        return Event("xid-154", pci, text, "pass", "the driver asks for nothing any more", "Nothing.", source)
    action = table().actions["reboot" if asks == "reboot" else "reset"]
    words = {"reboot": "a reboot of the machine", "reset": "a reset of the card", "drain": "an end of peer-to-peer use"}
    cure = " ".join(action.cure.split())
    if asks == "drain":
        cure = f"Stop the servers over several cards, then look again. {cure}"
    return Event("xid-154", pci, text, "fail", f"the driver asks for {words[asks]}", cure, source, asks)


def _switch(pci: str, number: int, text: str) -> Event:
    """An NVSwitch's own errors: hundreds of numbers, whose line says itself whether it is fatal."""
    fatal = re.search(r"\bNon-fatal\b", text, re.I) is None and re.search(r"\bFatal\b", text, re.I) is not None
    meaning = "an NVSwitch lost its links" if fatal else "an NVSwitch met an error that it goes on from"
    cure = "Nothing when they are few; the fabric manager's log names the link."
    if fatal:
        cure = "Stop all servers there and restart the fabric manager; if it stays, reboot the machine."
    source = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"
    return Event(f"sxid-{number}", pci, text, "fail" if fatal else "pass", meaning, cure, source)


def _other(line: str) -> Event | None:
    known = known_texts.first(table().lines, line)
    if known is None:
        return None
    address = _PCI.search(line)
    cure = " ".join(known.cure.split())
    needs: Recovery = "reboot" if known.recovery else "nothing"
    text, pci = _message(line), _address(address[0]) if address else ""
    return Event(known.id, pci, text, known.status, known.cause.rstrip("."), cure, known.source, needs)


def _message(line: str) -> str:
    """The line without time, host and `kernel:`."""
    return re.sub(r"^(\[[^\]]*\]\s*|\S+ \S+ kernel: )", "", line.strip())


def _address(text: str) -> str:
    """`0000:81:00` and `00000000:C1:00.0` as the kernel's 0000:81:00.0; one of another form as it stands."""
    found = re.fullmatch(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", text.strip().lower())
    if found is None:
        return text.strip().lower()
    return f"{int(found[1] or '0', 16):04x}:{found[2]}:{found[3]}.{found[4] or '0'}"
