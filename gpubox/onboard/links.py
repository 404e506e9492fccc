"""Settings for communication between the cards that one box's server uses, and what its profile sets otherwise."""

from gpubox.hosts import Box
from gpubox.nccl.choose import Choice, choose, differing, in_use
from gpubox.onboard.state import Gpus
from gpubox.rules import context
from gpubox.rules.facts import BoxFacts
from gpubox.rules.finding import UnknownError
from gpubox.rules.subjects import memory


def compared(box: Box, facts: BoxFacts, seen: Gpus) -> tuple[Choice, list[str]]:
    """What follows from the machine for the cards that the box's profile uses, and where the profile differs."""
    there = [card.index for card in seen.cards]
    cards = in_use(box.profile.environment, _count(box, facts, len(there)), there)
    choice = choose(facts.virtualisation, seen.links, seen.p2p, cards)
    return choice, differing(choice, box.profile.environment, box.profile.flags)


def _count(box: Box, facts: BoxFacts, there: int) -> int:
    """Cards that the flags ask for; all, where the flags are not known."""
    try:
        return memory.world_size(context.of(box, facts))
    except UnknownError:
        return there
