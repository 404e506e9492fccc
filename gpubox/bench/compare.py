"""Two runs side by side: what differs in results, beyond the noise or within it."""

from collections.abc import Callable, Sequence
from math import log

from gpubox.bench import summary
from gpubox.bench.causes import Cause, causes
from gpubox.bench.differences import Difference, differences
from gpubox.bench.record import Record, Row
from gpubox.bench.summary import Point, Value
from gpubox.support.data import Model

_MIXED = {("machine", "cards"): "hardware", ("server", "model"): "model", ("server", "SGLang"): "release of SGLang"}


class Ratio(Model):
    """One figure of the second run against the first."""

    base: float
    other: float
    ratio: float
    noise: float
    """Share by which the ratio may be off: the spreads of both runs together."""
    within_noise: bool

    @property
    def words(self) -> str:
        """As people read it."""
        if self.within_noise:
            return f"{self.ratio:.2f} times, within noise (±{self.noise:.0%})"
        return f"{self.ratio:.2f} times (noise ±{self.noise:.0%})"


class Line(Model):
    """One point that both runs have; None: not recorded in one of them."""

    concurrency: int | None
    output_tok_s: Ratio | None
    ttft_ms: Ratio | None
    tpot_ms: Ratio | None
    power_w: Ratio | None
    partial: bool
    """A figure of a row that did not finish is no result."""
    prompts_differ: bool


class Comparison(Model):
    """The second run against the first."""

    base: str
    other: str
    settings: list[Difference]
    lines: list[Line]
    best: Ratio | None
    """The best row of each, whatever their numbers of clients."""
    best_clients: list[int | None]
    causes: list[Cause]
    caveats: list[str]


def compare(base: Record, other: Record) -> Comparison:
    """What is different, in results and in settings, and what probably made the difference."""
    settings = differences([base, other])
    pairs = list(_pairs(base, other))
    lines = [_line(*pair) for pair in pairs]
    best = [_best(record) for record in (base, other)]
    return Comparison(
        base=base.label,
        other=other.label,
        settings=settings,
        lines=lines,
        best=_ratio(best[0], best[1], summary.output_tok_s),
        best_clients=[point.concurrency if point else None for point in best],
        causes=causes(base, other, settings, pairs),
        caveats=_caveats(base, other, settings, lines),
    )


def _pairs(base: Record, other: Record) -> list[tuple[Point, Point]]:
    theirs = {point.key: point for point in summary.points(other) if point.concurrency is not None}
    return [(point, theirs[point.key]) for point in summary.points(base) if point.key in theirs]


def _line(base: Point, other: Point) -> Line:
    reads: dict[str, Callable[[Row], float | None]] = {
        "output_tok_s": summary.output_tok_s,
        "ttft_ms": summary.ttft_ms,
        "tpot_ms": summary.tpot_ms,
        "power_w": summary.power_w,
    }
    ratios = {name: _ratio(base, other, read) for name, read in reads.items()}
    return Line(
        concurrency=base.concurrency,
        **ratios,
        partial=base.partial or other.partial,
        prompts_differ=_prompts(base) != _prompts(other) and None not in {*_prompts(base), *_prompts(other)},
    )


def _prompts(point: Point) -> set[int | None]:
    return {row.prompts for row in point.rows}


def _ratio(base: Point | None, other: Point | None, read: Callable[[Row], float | None]) -> Ratio | None:
    first = base.value(read) if base else None
    second = other.value(read) if other else None
    if first is None or second is None or first.mean <= 0 or second.mean <= 0:
        return None
    ratio, noise = second.mean / first.mean, _noise(first, second)
    within = abs(log(ratio)) <= log(1 + noise)
    return Ratio(base=first.mean, other=second.mean, ratio=ratio, noise=noise, within_noise=within)


def _noise(first: Value, second: Value) -> float:
    return float((first.noise**2 + second.noise**2) ** 0.5)


def _best(record: Record) -> Point | None:
    whole = [point for point in summary.points(record) if not point.partial and point.value(summary.output_tok_s)]
    return max(whole, key=lambda point: _mean(point), default=None)


def _mean(point: Point) -> float:
    value = point.value(summary.output_tok_s)
    return value.mean if value else 0.0


def _caveats(base: Record, other: Record, settings: Sequence[Difference], lines: Sequence[Line]) -> list[str]:
    broken = [record for record in (base, other) if record.verdict != "complete"]
    found = [f"{record.label}: {record.verdict}: {record.problem or 'nobody wrote how it ended'}" for record in broken]
    foreign = [record for record in (base, other) if record.kind == "foreign"]
    found += [f"{record.label}: {note}" for record in foreign for note in record.notes]
    changed = {(difference.kind, difference.name) for difference in settings}
    found += [f"other {word}: the ratio shows that too" for key, word in _MIXED.items() if key in changed]
    found += [f"{record.label}: no rows, only settings" for record in (base, other) if not record.rows]
    if base.rows and other.rows and summary.is_warm(base) is not summary.is_warm(other):
        each = "; ".join(f"{record.label}: {summary.warm_up_words(record)}" for record in (base, other))
        found.append(f"warm-up ({each}): without it the first row of a shape is slow, above all to its first token")
    if not lines and base.rows and other.rows:
        found.append("no row with the same clients and tokens in both: only the best rows stand side by side")
    if any(line.prompts_differ for line in lines):
        found.append("unequal numbers of prompts in some rows: in longer rows start and end weigh less")
    if any(line.partial for line in lines):
        found.append("some rows did not finish: their figures are no result")
    if any(len(point.rows) < 2 for record in (base, other) for point in summary.points(record)):
        found.append(f"single rows: a noise of {summary.SINGLE:.0%} is assumed; --repeat measures the real one")
    return found
