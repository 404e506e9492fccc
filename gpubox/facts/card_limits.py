"""Power limits and clocks of a machine's cards as they are now, and the unit that sets them. One
command."""

from dataclasses import dataclass

from typing_extensions import override

from gpubox.facts.answers import Fact, answers, script
from gpubox.hypervisor import limits
from gpubox.hypervisor.limits import LimitedCard

_OTHERS = (
    "grep -lsE 'nvidia-smi.* (-pl|--power-limit|-lgc|--lock-gpu-clocks|-lmc|--lock-memory-clocks)' "
    "/etc/systemd/system/*.service /etc/rc.local /etc/crontab /etc/cron.d/* /usr/local/sbin/* /usr/local/bin/*.sh"
)


@dataclass(frozen=True)
class LimitsState:
    """What the operation `card_limits` compares with."""

    cards: list[LimitedCard]
    trouble: str
    """Why nvidia-smi lists no cards, in its own words; empty: it did."""
    enabled: bool
    """The unit starts at each boot."""
    active: bool
    """The unit has set the limits since the driver was loaded."""
    stale: bool
    """The unit's file changed since systemd read it."""
    others: tuple[str, ...] = ()
    """Files of others that set limits, too."""


class LimitsFact(Fact[LimitsState]):
    """LimitsState of the host."""

    @override
    def command(self) -> str:
        properties = "UnitFileState,ActiveState,NeedDaemonReload"
        return script(
            {
                "cards": limits.QUESTION,
                "others": _OTHERS,
                "unit": f"systemctl show --property={properties} {limits.UNIT}",
            }
        )

    @override
    def process(self, output: list[str]) -> LimitsState:
        found = answers(output)
        cards = limits.parse(found["cards"].text)
        lines = found["unit"].expect(0, what=limits.UNIT).splitlines()
        unit = dict(line.split("=", 1) for line in lines if "=" in line)
        said = " ".join(found["cards"].text.split()) or f"exit code {found['cards'].rc}"
        return LimitsState(
            cards=cards,
            trouble="" if cards else said,
            enabled=unit.get("UnitFileState") == "enabled",
            active=unit.get("ActiveState") == "active",
            others=tuple(path for path in found["others"].text.split() if path not in limits.FILES),
            stale=unit.get("NeedDaemonReload") == "yes",
        )
