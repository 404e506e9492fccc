"""Settings for communication between cards, from where the machine is and what lies between the cards in use.

It says what counts as evidence, and leaves a setting out rather than guess. Nothing here is measured: that data really
goes from card to card right is another question, and in a VM the answer of the driver does not count at all
(nccl#2335: peer-to-peer is advertised, and reads give zeros).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpubox.nccl.levels import DEFAULT, rank
from gpubox.nccl.place import Place
from gpubox.nccl.topology import Matrix, worst
from gpubox.settings.profile import FlagValue, Reason
from gpubox.support.errors import CannotTellError

_LEVELS = {"NV": "NVL", "PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}
_MANUAL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-p2p-level"
_LYING = "https://github.com/NVIDIA/nccl/issues/2335"
_RECORDED = "recorded deployment: eight cards passed through to a VM"
_SHOWN = 4
"""Pairs without peer-to-peer that are named."""


@dataclass(frozen=True)
class Choice:
    """What to set, why, and what could not be told."""

    environment: dict[str, str] = field(default_factory=dict)
    flags: dict[str, FlagValue] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    open: str = ""
    """What is missing to choose; empty: nothing. Then `environment` and `flags` are the whole choice."""

    @property
    def words(self) -> str:
        """The settings as people write them, `NAME=value` and `--flag`."""
        return " ".join([*(f"{k}={v}" for k, v in self.environment.items()), *(f"--{flag}" for flag in self.flags)])

    @property
    def why(self) -> str:
        """All reasons, each once."""
        return "; ".join(dict.fromkeys(reason.why for reason in self.reasons))


def choose(
    place: Place | None, links: Matrix | None, p2p: Matrix | None, cards: Sequence[int], recorded: bool = False
) -> Choice:
    """The settings for a server on these cards.

    + place: as gpubox.nccl.place judges
    + links: of `nvidia-smi topo -m`; None: it could not be asked
    + p2p: of `nvidia-smi topo -p2p r`; None: it could not be asked
    + cards: indices of those that one server uses
    + recorded: in a VM, the recorded NCCL_P2P_LEVEL=PHB in place of switching peer-to-peer off
    """
    if len(cards) < 2:
        return Choice()
    if place is None:
        return Choice(open="whether this is a VM: settings differ, and the wrong ones hang or corrupt")
    if place == "vm":
        return _recorded_vm() if recorded else _without("a VM may advertise peer-to-peer that reads zeros", _LYING)
    if p2p is None or links is None or max(cards) >= min(links.cards, p2p.cards):
        return Choice(open="links and peer-to-peer between the cards: nvidia-smi topo -m and topo -p2p r")
    broken = [f"{a}-{b}: {word}" for (a, b), word in p2p.between(cards).items() if word != "OK"]
    if broken:
        more = [f"and {len(broken) - _SHOWN} more pairs"] if len(broken) > _SHOWN else []
        told = ", ".join([*broken[:_SHOWN], *more])
        return _without(f"the driver knows no peer-to-peer between cards {told}", "nvidia-smi topo -p2p r")
    try:
        return _level(worst(links.between(cards).values()))
    except CannotTellError as error:
        return Choice(open=error.found)


def in_use(environment: Mapping[str, str], count: int, there: Sequence[int]) -> list[int]:
    """Indices of the cards that a server of `count` takes: the first of CUDA_VISIBLE_DEVICES, else of those there.

    All of those there, where the variable names cards otherwise than by their numbers.
    """
    words = [word.strip() for word in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip()]
    named = [int(word) for word in words if word.isdecimal()]
    if len(named) != len(words) or not {*named} <= {*there}:
        return list(there)
    return sorted((named or list(there))[:count])


def differing(choice: Choice, environment: Mapping[str, str], flags: Mapping[str, FlagValue]) -> list[str]:
    """What a profile sets otherwise than the choice, in its own words; a farther level lets through as much."""
    wrong = [
        _told(environment, name)
        for name, value in choice.environment.items()
        if (not _reaches(environment, value) if name == "NCCL_P2P_LEVEL" else environment.get(name) != value)
    ]
    return wrong + [f"no --{name}" for name, value in choice.flags.items() if flags.get(name) != value]


def _told(environment: Mapping[str, str], name: str) -> str:
    off = name == "NCCL_P2P_LEVEL" and environment.get("NCCL_P2P_DISABLE") == "1"
    return "NCCL_P2P_DISABLE=1" if off else f"{name}={environment.get(name, '(not set)')}"


def _reaches(environment: Mapping[str, str], level: str) -> bool:
    theirs, wanted = rank(environment.get("NCCL_P2P_LEVEL", DEFAULT)), rank(level)
    off = environment.get("NCCL_P2P_DISABLE") == "1"
    return theirs is not None and wanted is not None and theirs >= wanted and not off


def _level(link: str) -> Choice:
    level = _LEVELS["NV" if link.startswith("NV") else link]
    why = f"peer-to-peer works between all pairs, and the worst link between the cards in use is {link}"
    return Choice({"NCCL_P2P_LEVEL": level}, {}, (Reason(setting="NCCL_P2P_LEVEL", why=why, source=_MANUAL),))


def _without(why: str, source: str) -> Choice:
    return Choice(
        {"NCCL_P2P_DISABLE": "1"},
        {"disable-custom-all-reduce": True},
        (
            Reason(setting="NCCL_P2P_DISABLE", why=why, source=source),
            Reason(setting="disable-custom-all-reduce", why="SGLang's own all-reduce needs it", source=source),
        ),
    )


def _recorded_vm() -> Choice:
    why = "as it ran: peer-to-peer at most over one host bridge, and no two of these cards were that near"
    return Choice(
        {"NCCL_P2P_LEVEL": "PHB"},
        {"disable-custom-all-reduce": True},
        (
            Reason(setting="NCCL_P2P_LEVEL", why=why, source=_RECORDED),
            Reason(setting="disable-custom-all-reduce", why="there was no peer-to-peer", source=_RECORDED),
        ),
    )
