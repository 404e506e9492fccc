"""What the rules judge a box by, from the box itself. One command."""

from dataclasses import dataclass

from typing_extensions import override

from gpubox.driver import kernel_log
from gpubox.driver.kernel_log import KernelLog
from gpubox.facts.answers import Fact, answers, script
from gpubox.hypervisor import cards
from gpubox.hypervisor.cards import Card, Wanted
from gpubox.onboard import probe, questions
from gpubox.rules.facts import BoxFacts
from gpubox.support.errors import GpuboxError


@dataclass(frozen=True)
class CardsLog:
    """A machine's cards, and what its kernel log says of them."""

    cards: list[Card]
    log: KernelLog

    def recovery(self, gpus: Wanted) -> list[str] | None:
        """What the log asks for before these cards are used again; None: it cannot be read."""
        if not self.log.readable:
            return None
        try:
            ours = {card.pci for card in cards.choose(self.cards, gpus)}
        except GpuboxError:  # the step of the hypervisor says which card is not there
            return kernel_log.recovery(self.log.events)
        return kernel_log.recovery(self.log.events, ours)


class MachineLog(Fact[CardsLog]):
    """CardsLog of a hypervisor: its containers may mostly not read the log themselves."""

    @override
    def command(self) -> str:
        information = "cat /proc/driver/nvidia/gpus/*/information"
        return script({"cards": information, "pci": cards.LIST, "log": kernel_log.QUESTION})

    @override
    def process(self, output: list[str]) -> CardsLog:
        found = answers(output)
        log = kernel_log.parse(found["log"].rc, found["log"].text)
        return CardsLog(cards.present(found["cards"].text, found["pci"].text), log)


class LiveFacts(Fact[BoxFacts]):
    """BoxFacts as the box has them now."""

    @override
    def command(self) -> str:
        return script(questions.FACTS)

    @override
    def process(self, output: list[str]) -> BoxFacts:
        return probe.read_facts(answers(output))
