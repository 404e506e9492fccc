"""Power limits of the cards: within what a card takes, and as the card has them now."""

from collections.abc import Iterator

from gpubox.hypervisor import limits
from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule

_TOLERANCE_W = 0.5


@rule(
    "power-limit-range",
    "error",
    "A power limit is one that the card takes.",
    "https://docs.nvidia.com/deploy/nvidia-smi/ (--power-limit: between Min and Max Power Limit of the card)",
    needs=("card",),
)
def in_range(c: Context) -> Iterator[Told]:
    """By the catalogue; each card's own range is asked of the card before anything is set."""
    for name, limit in c.box.card_limits.items():
        if limit.power_w is None or not c.gpu:
            continue
        found = f"card_limits, {name}: power_w is {limit.power_w}"
        lowest, highest = c.card.power_range_w or (0, 0)
        if highest and not lowest <= limit.power_w <= highest:
            yield Told(f"{found}, {c.card.name} takes {lowest} to {highest}", "a value between them", "correct it")
        elif not highest and limit.power_w > c.card.power_limit_w:
            needed = f"at most the highest default of {c.card.name}, {c.card.power_limit_w} W"
            yield Told(found, needed, "see Max Power Limit in nvidia-smi -q -d POWER", "warning")


@rule(
    "power-limit",
    "warning",
    "Cards have the power limit that the data says.",
    "https://github.com/olafkfreund/nixos_config/issues/1396 (gone after each reboot and each load of the driver)",
    "https://github.com/noonghunna/club-3090/issues/483 (power supplies that trip)",
    needs=("facts",),
)
def as_set(c: Context) -> Iterator[Told]:
    """Compared card by card; the deploy sets what differs."""
    if not c.box.card_limits:
        return
    for card in c.found_cards:
        limit = limits.limit_of(c.box.card_limits, card.uuid, card.pci)
        if limit is None or limit.power_w is None:
            continue
        now = card.power_limit_w
        if now is None or abs(now - limit.power_w) > _TOLERANCE_W:
            shown = "no power limit that is known" if now is None else f"a power limit of {now:g} W"
            found = f"card {card.uuid or card.name} has {shown}, the data says {limit.power_w} W"
            todo = f"run the deploy: it starts {limits.UNIT} where the driver is"
            yield Told(found, f"{limit.power_w} W", todo)
