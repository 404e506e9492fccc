"""The cards, and the kernel log of the machine that has them: as the box sees them, and as its hypervisor does."""

from collections.abc import Sequence
from dataclasses import replace

from gpubox.doctor.check import Check, Status
from gpubox.driver import kernel_log
from gpubox.hosts import Box
from gpubox.onboard import hardware
from gpubox.onboard.hardware import View
from gpubox.onboard.state import recovery_facts
from gpubox.rules.finding import Severity

_STATUS: dict[Severity, Status] = {"error": "fail", "unknown": "unknown", "warning": "warn", "info": "pass"}
_RESTARTED = ("service", "endpoint")
"""Checks whose usual cure is a restart."""


def checks(box: Box, views: Sequence[View], container: bool) -> list[Check]:
    """A line for each thing that is wrong with cards or machine, and one on the kernel log.

    + views: the box's own view of its cards where it was reached, then its hypervisor's where that was
    + container: the box's own end is not its machine's
    """
    found = [
        Check(box.name, f"cards.{one.rule}", _STATUS[one.severity], one.found, one.needed, one.todo)
        for one in hardware.findings(box.name, views, container)
    ]
    if not found:
        count = max((len(seen.cards) for _, seen in views), default=0)
        found = [Check(box.name, "cards", "pass", f"{count} cards, nothing against them")]
    return [*found, _log(box.name, views)]


def without_restart(found: Sequence[Check], views: Sequence[View]) -> list[Check]:
    """The checks; where the kernel log asks for a reset or reboot, none of them names a restart as its cure."""
    asked = [line for _, seen in views for line in recovery_facts(seen.cards, seen.broken, seen.kernel_log) or []]
    if not asked:
        return list(found)
    cure = f"no restart: {asked[0]}; stop what restarts it (systemctl stop sglang), then reboot or power cycle"
    return [
        replace(check, cure=cure) if check.id in _RESTARTED and check.status == "fail" else check for check in found
    ]


def _log(host: str, views: Sequence[View]) -> Check:
    """Whether the log was read at all: silence of a log that nobody may read is no good news."""
    read = [(name, seen.kernel_log) for name, seen in views if seen.kernel_log.readable]
    if not read:
        why = "; ".join(f"{name}: {seen.kernel_log.why}" for name, seen in views) or "no machine was reached"
        cure = "name its hypervisor in the inventory; dmesg as root on the machine that has the cards"
        return Check(host, "kernel-log", "warn", f"not read: {why}", "a kernel log that may be read", cure)
    name, log = read[-1]
    mild = [event for event in log.events if event not in kernel_log.worst(log.events)]
    told = f"; of no weight: {'; '.join(event.found for event in mild[:2])}" if mild else ""
    bad = len(log.events) - len(mild)
    words = f"{bad} things that matter (above)" if bad else "nothing that matters"
    return Check(host, "kernel-log", "pass", f"{name}: {words}{told}")
