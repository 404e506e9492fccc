"""What differs in the settings of runs: flags, environment, packages, release, machine."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Literal

from gpubox.bench import flags
from gpubox.bench.record import Record
from gpubox.support.data import Model

Kind = Literal["flag", "environment", "package", "server", "machine"]
UNKNOWN = "not recorded"
PACKAGES = (
    "sglang",
    "torch",
    "triton",
    "transformers",
    "sglang-kernel",
    "sgl-kernel",
    "flashinfer-python",
    "flash-attn",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "compressed-tensors",
    "xgrammar",
)
"""Packages that bear on speed; a difference in another one is only counted."""


class Difference(Model):
    """One setting that is not the same in all runs."""

    kind: Kind
    name: str
    values: list[str | None]
    """In the order of the runs; None: not set there; UNKNOWN: nobody wrote it down."""


def differences(records: Sequence[Record]) -> list[Difference]:
    """Everything that is known to differ. What a run did not record is no difference, but shown where others differ."""
    return [
        *_of_maps("flag", _flags(records)),
        *_of_maps("environment", [record.server.environment for record in records]),
        *_of_values("server", records, _SERVER),
        *_of_values("machine", records, _MACHINE),
        *_packages(records),
    ]


def cards(record: Record) -> str | None:
    """As `8 x NVIDIA H200`; None: not recorded."""
    names = sorted(card.name for card in record.machine.cards)
    return ", ".join(f"{len(list(same))} x {name}" for name, same in groupby(names)) or None


def version(record: Record) -> str | None:
    """SGLang's version."""
    return record.server.version or record.machine.packages.get("sglang")


def _flags(records: Sequence[Record]) -> list[dict[str, str] | None]:
    """Typed flags where there are any. Of a run that only reported its settings (551 of them), those, and what was set.

    All of them where every run only reported them.
    """
    wanted = {name for record in records if record.server.argv for name in flags.typed(record.server.argv)}
    if not any(record.server.argv for record in records):
        return [flags.of(record) for record in records]
    told = [flags.told(record.server.server_args or {}) for record in records if not record.server.argv]
    return [flags.of(record, wanted.union(*told)) for record in records]


def _of_maps(kind: Kind, maps: Sequence[dict[str, str] | None]) -> list[Difference]:
    known = [found for found in maps if found is not None]
    names = sorted({name for found in known for name in found})
    rows = [(name, [found.get(name) if found is not None else UNKNOWN for found in maps]) for name in names]
    return [Difference(kind=kind, name=name, values=values) for name, values in rows if _differ(values)]


def _of_values(
    kind: Kind, records: Sequence[Record], reads: dict[str, Callable[[Record], str | None]]
) -> list[Difference]:
    rows = [(name, [read(record) or UNKNOWN for record in records]) for name, read in reads.items()]
    return [Difference(kind=kind, name=name, values=[*values]) for name, values in rows if _differ([*values])]


def _packages(records: Sequence[Record]) -> list[Difference]:
    all_of_them = _of_maps("package", [record.machine.packages or None for record in records])
    shown = [difference for difference in all_of_them if difference.name in PACKAGES]
    rest = len(all_of_them) - len(shown)
    count = Difference(kind="package", name=f"{rest} packages that hardly bear on speed", values=["…"] * len(records))
    return [*shown, *([count] if rest else [])]


def _differ(values: list[str | None]) -> bool:
    return len({value for value in values if value != UNKNOWN}) > 1


_SERVER: dict[str, Callable[[Record], str | None]] = {
    "SGLang": version,
    "model": lambda record: record.server.model,
    "source patches": lambda r: None if r.server.patches is None else ", ".join(r.server.patches) or "none",
    "release": lambda record: record.server.release,
}
_MACHINE: dict[str, Callable[[Record], str | None]] = {
    "cards": cards,
    "driver": lambda record: record.machine.driver,
    "topology": lambda record: record.machine.topology,
    "processor": lambda r: f"{r.machine.cores} x {r.machine.cpu}" if r.machine.cpu else None,
}
