"""How a machine's last boots ended, and whether its model server served then.

A machine that resets itself under load leaves nothing in its log: fwupd/fwupd#10896, wilicc/gpu-burn#147.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from gpubox.support.reading import reader

# what systemd and the kernel say last when a machine is shut down; a boot without it ended by itself
_SHUTDOWN = (
    "Journal stopped|systemd-shutdown|Shutting down\\.|reboot: |Power down|System is (rebooting|powering|halting)|"
    "Reached target .*([Rr]eboot|[Pp]ower-?[Oo]ff|[Ss]hutdown|[Hh]alt|[Ff]inal|[Kk]exec)"
)
_LAST = r"s/^(reboot|shutdown) [^T]*[^0-9T]([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:+-]+).*/last \1 \2/p"
"""Without a journal of earlier boots, the login records say when the machine started and was shut down."""
QUESTION = f"""[ -d /var/log/journal ] || {{
last -x --time-format iso reboot shutdown | sed -nE '{_LAST}' | head -n 12; exit 0; }}
for b in -1 -2 -3 -4; do
t=$(journalctl -b $b -q --no-pager -o short-unix -n 40) || continue; [ -n "$t" ] || continue
e=reset; printf '%s\\n' "$t" | grep -qE '{_SHUTDOWN}' && e=clean
s=$(journalctl -b $b -q --no-pager -o short-unix -n 1 -u sglang.service | cut -d' ' -f1)
echo "$b $(printf '%s\\n' "$t" | tail -n1 | cut -d' ' -f1) $e ${{s:--}}"; done; exit 0"""
"""Shell text that prints what `parse` reads."""
SERVING_S = 600.0
"""A server that said something so long before the end was serving; when idle it says little."""
CURE = (
    "run one card alone, then two, with a power limit on each (nvidia-smi -pl), and see when it stops happening: power "
    "supply, its cables and firmware are the usual causes; report it with those results"
)


@dataclass(frozen=True)
class Boot:
    """One earlier boot."""

    number: int
    """-1: the last one."""
    end: float
    """Seconds since 1970 of the last line of its journal."""
    clean: bool
    """It was shut down."""
    served: float | None
    """Seconds since 1970 of the model server's last line; None: it said nothing."""


@reader("boots of the machine")
def parse(text: str) -> list[Boot]:
    """From lines `NUMBER END clean|reset SERVED`, or `last reboot|shutdown TIME`; others are left out."""
    found = _from_logins(text)
    for line in text.splitlines():
        match = re.fullmatch(r"(-\d+) (\d+(?:\.\d+)?) (clean|reset) (-|\d+(?:\.\d+)?)", line.strip())
        if match is None:
            continue
        served = None if match[4] == "-" else float(match[4])
        found.append(Boot(int(match[1]), float(match[2]), match[3] == "clean", served))
    return found


def _from_logins(text: str) -> list[Boot]:
    """Newest first: a start that no shutdown stands before, in time, ended the boot before it without one."""
    rows = re.findall(r"^last (reboot|shutdown) (\S+)$", text, re.M)
    found: list[Boot] = []
    for (kind, when), (before, _) in pairwise(rows):
        if kind != "reboot":
            continue
        try:
            started = datetime.fromisoformat(when).timestamp()
        except ValueError:
            continue
        found.append(Boot(-1 - len(found), started, before == "shutdown", None))
    return found


def resets(machine: str, boots: Sequence[Boot], box: Sequence[Boot] = ()) -> list[str]:
    """One line for each boot of the machine that ended without a shutdown, beside what served then.

    + machine: its name
    + boots: its own earlier boots
    + box: those of the container that it holds, whose server has its own journal
    """
    lines = []
    for boot in boots:
        if boot.clean:
            continue
        when = datetime.fromtimestamp(boot.end, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        last = _last_served(boot, box)
        words = "no model server said anything shortly before"
        if last is not None:
            words = f"the model server's last line is {boot.end - last:.0f} s before it"
        lines.append(f"{machine} stopped at {when} without a shutdown; {words}")
    return lines


def while_serving(boots: Sequence[Boot], box: Sequence[Boot] = ()) -> bool:
    """Whether one of these ends came while a model server ran."""
    return any(not boot.clean and _last_served(boot, box) is not None for boot in boots)


def _last_served(boot: Boot, box: Sequence[Boot]) -> float | None:
    told = [boot.served, *(other.served for other in box)]
    near = [served for served in told if served is not None and -SERVING_S <= boot.end - served <= SERVING_S]
    return max(near) if near else None
