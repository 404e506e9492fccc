"""Step `judge`: the rules again, with what only the box itself can say."""

from functools import partial

from pyinfra.context import host

from gpubox.deploy import step
from gpubox.facts.live import CardsLog, LiveFacts, MachineLog
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.judged import judged


@step("Rules")
def judge(box: Box) -> None:
    """Stop before anything large is installed where a rule says that it cannot work here."""
    look, above = partial(read, LiveFacts), partial(_recovery_above, box)
    judged(name=f"{box.profile.name} can work here", box=box, look=look, above=above)


def _recovery_above(box: Box) -> list[str] | None:
    """What its hypervisor's kernel log asks for; None: it has none, or this run does not reach it."""
    name = box.settings.hypervisor
    hypervisor = host.state.inventory.get_host(name, None) if name and host.state else None
    if hypervisor is None or not hypervisor.connected:
        return None
    found: CardsLog = hypervisor.get_fact(MachineLog)
    return found.recovery(box.settings.gpus)
