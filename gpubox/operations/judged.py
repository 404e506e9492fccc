"""Stop where a rule says that the settings cannot work on this very box."""

import io
from collections.abc import Callable, Iterable

from pyinfra import host, logger
from pyinfra.api import Host, State
from pyinfra.api.command import FunctionCommand
from rich.console import Console

from gpubox import rules
from gpubox.hosts import Box
from gpubox.operations import Commands, operation
from gpubox.rules.facts import BoxFacts
from gpubox.rules.finding import Finding


@operation()
def judged(box: Box, look: Callable[[], BoxFacts], above: Callable[[], list[str] | None] | None = None) -> Commands:
    """
    Judge the box's settings again, with facts from the box; what was told without them is not told twice.

    + box: with its settings
    + look: gives its BoxFacts
    + above: gives what the kernel log of its hypervisor asks for, asked where the box cannot read that log itself
    """
    known, facts = rules.check(box), look()
    if facts.recovery is None and above is not None and box.stack.device == "cuda":
        facts = facts.model_copy(update={"recovery": above()})
    found = [finding for finding in rules.check(box, facts) if finding not in known]
    if told := text(found):
        logger.info(f"{host.print_prefix}{told}")
    if errors := rules.errors(found):
        yield FunctionCommand(_stop, (errors,), {})


def text(findings: Iterable[Finding]) -> str:
    """Findings as lines for a log, without the merely informative."""
    console = Console(file=io.StringIO(), width=120)
    rules.report([finding for finding in findings if finding.severity != "info"], console)
    return str(console.file.getvalue()).strip()  # type: ignore[attr-defined]  # the StringIO of just above


def _stop(state: State, host: Host, errors: str) -> bool:
    logger.error(f"{host.print_prefix}{errors}")
    return False
