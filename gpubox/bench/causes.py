"""What probably made the difference between two runs, from the results themselves and from the rules' evidence."""

from collections.abc import Sequence
from typing import Literal

from gpubox.bench import flags, summary
from gpubox.bench.differences import Difference
from gpubox.bench.flags import CAP
from gpubox.bench.record import Record
from gpubox.bench.show import number
from gpubox.bench.summary import Point
from gpubox.rules.registry import rules
from gpubox.support.data import Model

_RULES: dict[str, tuple[str, ...]] = {
    CAP: ("running-request-cap",),
    "disable-cuda-graph": ("cuda-graphs",),
    "cuda-graph-backend-decode": ("cuda-graphs",),
    "cuda-graph-bs-decode": ("cuda-graphs", "decode-graph-size"),
    "cuda-graph-max-bs-decode": ("cuda-graphs", "decode-graph-size"),
    "cuda-graph-max-bs": ("cuda-graphs", "decode-graph-size"),
    "cuda-graph-bs": ("cuda-graphs", "decode-graph-size"),
    "source patches": ("autotune-off",),
    "enable-flashinfer-allreduce-fusion": ("all-reduce-fusion",),
    "flashinfer-allreduce-fusion-backend": ("all-reduce-fusion",),
    "moe-runner-backend": ("moe-backend-equal", "nvfp4-moe-auto", "moe-trtllm"),
    "attention-backend": ("dsa-attention-backend",),
    "nsa-decode-backend": ("dsa-backends-sm120",),
    "nsa-prefill-backend": ("dsa-backends-sm120",),
    "dsa-decode-backend": ("dsa-backends-sm120",),
    "dsa-prefill-backend": ("dsa-backends-sm120",),
    "kv-cache-dtype": ("dsa-bf16-kv-sm120", "fp8-kv-on-int4"),
    "disable-custom-all-reduce": ("vm-peer-to-peer", "peer-to-peer-measured"),
    "NCCL_P2P_LEVEL": ("vm-peer-to-peer", "peer-to-peer-measured"),
    "NCCL_P2P_DISABLE": ("vm-peer-to-peer", "peer-to-peer-measured"),
    "tp-size": ("tensor-parallel-cards",),
}
_MEASURED = {
    "stream-interval": (
        "measured on one H200, SGLang 0.5.16, 1,024 clients: with `--stream-interval 16` and graphs up to 1,024 "
        "17,645-18,005 tok/s, against 9,327 with the defaults and 11,931 with the graphs alone"
    ),
    "enable-mixed-chunk": (
        "measured on one H200, SGLang 0.5.16, 1,024 clients: with `--enable-mixed-chunk --chunked-prefill-size 4096` "
        "5,092 tok/s, against 9,327 with the defaults"
    ),
}


class Cause(Model):
    """Something that differs and is known, or seen here, to matter."""

    setting: str
    values: list[str | None]
    strength: Literal["seen", "known"]
    """`seen`: the results bear its mark; `known`: other runs say that it matters, these do not single it out."""
    why: str
    evidence: list[str]


def causes(
    base: Record, other: Record, settings: Sequence[Difference], pairs: Sequence[tuple[Point, Point]]
) -> list[Cause]:
    """Those that the results themselves show first."""
    seen = _cap(base, other, settings, pairs)
    known = [_known(one) for one in settings if _matters(one) and not (seen and one.name == CAP)]
    return [*([seen] if seen else []), *known]


def _matters(difference: Difference) -> bool:
    """Not where one run leaves to SGLang what the other one calls `auto`."""
    return bool(_evidence(difference.name)) and len({None if v == "auto" else v for v in difference.values}) > 1


def _known(difference: Difference) -> Cause:
    ids = _RULES.get(difference.name, ())
    titles = [rules()[name].title for name in ids if name in rules()]
    return Cause(
        setting=difference.name,
        values=difference.values,
        strength="known",
        why=" ".join(titles) or "It is known to matter.",
        evidence=_evidence(difference.name),
    )


def _evidence(setting: str) -> list[str]:
    table = rules()
    found = [text for name in _RULES.get(setting, ()) if name in table for text in table[name].evidence]
    return [*found, *([_MEASURED[setting]] if setting in _MEASURED else [])]


def _cap(
    base: Record, other: Record, settings: Sequence[Difference], pairs: Sequence[tuple[Point, Point]]
) -> Cause | None:
    """A cap shows: above it the capped run gives less and its clients wait for their first token."""
    caps = [_cap_of(base), _cap_of(other)]
    if not any(difference.name == CAP for difference in settings) or caps[0] == caps[1]:
        return None
    capped = 0 if _number(caps[0]) < _number(caps[1]) else 1
    low = int(_number(caps[capped]))
    starved = [pair for pair in pairs if (pair[0].concurrency or 0) > low and _starved(pair[capped], pair[1 - capped])]
    if not starved:
        return None
    return Cause(
        setting=CAP,
        values=[str(cap) if cap else None for cap in caps],
        strength="seen",
        why=_told(low, starved[-1][capped], starved[-1][1 - capped]),
        evidence=_evidence(CAP),
    )


def _starved(capped: Point, free: Point) -> bool:
    waits, answers = capped.value(summary.ttft_ms), free.value(summary.ttft_ms)
    less, more = capped.value(summary.output_tok_s), free.value(summary.output_tok_s)
    if not (waits and answers and less and more):
        return False
    noise = (less.noise**2 + more.noise**2) ** 0.5
    return waits.mean > 2 * answers.mean and more.mean > less.mean * (1 + noise)


def _told(low: int, capped: Point, free: Point) -> str:
    rates = [point.value(summary.output_tok_s) for point in (capped, free)]
    waits = [point.value(summary.ttft_ms) for point in (capped, free)]
    clients = capped.concurrency or 0
    rate, wait = (" against ".join(number(value.mean if value else None) for value in pair) for pair in (rates, waits))
    return (
        f"At {clients} clients only {low} requests run at once and {clients - low} wait in the queue: the first token "
        f"comes after {wait} ms, and the output is {rate} tok/s."
    )


def _cap_of(record: Record) -> int | None:
    """What was asked for; None: nothing, the server runs as many as fit."""
    value = (flags.of(record) or {}).get(CAP)
    return int(value) if value and value.isdigit() else None


def _number(cap: int | None) -> float:
    return float("inf") if cap is None else cap
