"""Which profiles fit a machine, best first, with the reason for each and for each that does not fit."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpubox import inventory, rules
from gpubox.catalog import models
from gpubox.hosts import Box
from gpubox.onboard import links
from gpubox.onboard.state import Gpus
from gpubox.rules import context
from gpubox.rules.facts import BoxFacts
from gpubox.rules.finding import Finding, UnknownError
from gpubox.rules.subjects import memory
from gpubox.settings import profile

OPEN = "api-open"
"""The rule about servers without a key: what a person decides, no reason why a profile does not fit."""


@dataclass(frozen=True)
class Proposal:
    """One profile, judged for one machine."""

    profile: str
    summary: str
    fits: bool
    reasons: tuple[str, ...]
    """Why it fits, or everything that speaks against it."""
    notes: tuple[str, ...] = ()
    """What to look at although it fits."""
    weight: float = 0
    """GiB of weights: among those that fit, the biggest model comes first."""
    open: bool = False
    """Everybody who reaches the address may use it, unless the box's data says that nobody else does."""


def proposals(data: Mapping[str, Any], facts: BoxFacts, silent: str, seen: Gpus) -> list[Proposal]:
    """All profiles, those that fit first.

    + data: what the inventory will say of the box, without its profile
    + silent: why no program can use the cards; empty: nothing
    + seen: the cards, and the links between them
    """
    judged = [_judge(name, data, facts, silent, seen) for name in profile.names()]
    return sorted(judged, key=lambda one: (not one.fits, -one.weight, len(one.notes), one.profile))


def _judge(name: str, data: Mapping[str, Any], facts: BoxFacts, silent: str, seen: Gpus) -> Proposal:
    wish = profile.load(name)
    if wish.status == "history":
        return Proposal(name, wish.summary, False, ("a recorded deployment, kept to be compared with",))
    if wish.purpose == "practice" and not seen.stand_in:
        return Proposal(name, wish.summary, False, ("for the practice machine",))
    box = inventory.box_of("this", {**data, "profile": name}, f"profile {name}")
    found = rules.check(box, facts)
    against = _counted(_said(one) for one in found if one.severity == "error" and one.rule != OPEN)
    if box.stack.device == "cuda" and silent:
        against.insert(0, silent)
    if against:
        return Proposal(name, wish.summary, False, tuple(against))
    notes = [*_weights(box), *(f"{one.rule}: {one.found}" for one in found if one.severity != "info")]
    why, weight = _arithmetic(box, facts)
    return Proposal(name, wish.summary, True, (why,), (*notes, *_differing(box, facts, seen)), weight, _is_open(found))


def _weights(box: Box) -> list[str]:
    """What a person must put on the box; of the hub's models, and of those that are made there, nothing."""
    path, known = box.profile.model_path, models().get(box.profile.model.catalog or "")
    if not path.startswith("/") or box.profile.model.make:
        return []
    name = f", {known.hub[0]} of the hub" if known and known.hub else ""
    told = f" ({known.weights_gib:,.0f} GiB{name})" if known else ""
    return [f"its weights{told} must lie in {path} on the box; the deploy stops where they do not"]


def _is_open(found: Iterable[Finding]) -> bool:
    return any(one.rule == OPEN and one.severity == "error" for one in found)


def _said(one: Finding) -> str:
    return f"{one.found} (needed: {one.needed})" if one.needed else one.found


def _counted(reasons: Iterable[str]) -> list[str]:
    """Each once: what is wrong with eight cards alike is one reason."""
    return [reason if count == 1 else f"{count} x {reason}" for reason, count in Counter(reasons).items()]


def _arithmetic(box: Box, facts: BoxFacts) -> tuple[str, float]:
    if box.stack.device == "cpu":
        return "it needs no card: the practice machine's", 0.0
    judged = context.of(box, facts)
    try:
        return str(memory.arithmetic(judged)), judged.model.weights_gib
    except UnknownError as error:
        return f"nothing speaks against it; its memory cannot be computed: {error.found}", 0.0


def _differing(box: Box, facts: BoxFacts, seen: Gpus) -> list[str]:
    """What the profile sets otherwise than the links between the cards that it uses ask for."""
    if box.stack.device == "cpu":
        return []
    choice, wrong = links.compared(box, facts, seen)
    return [f"sets {', '.join(wrong)}; the links between these cards ask for {choice.words}"] if wrong else []
