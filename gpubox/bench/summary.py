"""What the repeats of a point say together."""

from collections.abc import Callable
from dataclasses import dataclass

from gpubox.bench.record import CardLoad, Latency, Record, Row

FLOOR, SINGLE = 0.03, 0.05
"""Least noise believed of repeated rows, and noise assumed of a single one. On an H200 two runs of the same row lay 2 %
apart (measured)."""


@dataclass(frozen=True)
class Value:
    """Mean of the repeats, and how far they lie apart."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def noise(self) -> float:
        """Share of the mean by which a repeat may differ."""
        if self.count < 2 or not self.mean:
            return SINGLE
        return max(FLOOR, (self.high - self.low) / self.mean)

    @property
    def spread(self) -> str:
        """As people read it: `±3 %`, or nothing for a single row."""
        return f"±{50 * (self.high - self.low) / self.mean:.0f} %" if self.count > 1 and self.mean else ""


@dataclass(frozen=True)
class Point:
    """All rows of a record with the same number of clients and tokens."""

    concurrency: int | None
    input_tokens: int | None
    output_tokens: int | None
    rows: tuple[Row, ...]

    @property
    def key(self) -> tuple[int | None, int | None, int | None]:
        """What must be equal for two points to be compared."""
        return self.concurrency, self.input_tokens, self.output_tokens

    @property
    def partial(self) -> bool:
        """Some requests of some repeat did not finish: no result."""
        return any(row.status != "complete" for row in self.rows)

    def value(self, read: Callable[[Row], float | None]) -> Value | None:
        """One figure over the repeats; None: not recorded."""
        values = [found for row in self.rows if (found := read(row)) is not None]
        return Value(sum(values) / len(values), min(values), max(values), len(values)) if values else None


def points(record: Record) -> list[Point]:
    """The record's points by rising number of clients; unknown numbers last."""
    groups: dict[tuple[int | None, int | None, int | None], list[Row]] = {}
    for row in record.rows:
        groups.setdefault((row.concurrency, row.input_tokens, row.output_tokens), []).append(row)
    found = [Point(*key, tuple(rows)) for key, rows in groups.items()]
    return sorted(found, key=lambda point: tuple((part is None, part or 0) for part in point.key))


def output_tok_s(row: Row) -> float | None:
    """Output tokens a second."""
    return row.output_tok_s


def ttft_ms(row: Row) -> float | None:
    """Median time to the first token."""
    return _typical(row.ttft_ms)


def tpot_ms(row: Row) -> float | None:
    """Median time per output token after the first."""
    return _typical(row.tpot_ms)


def power_w(row: Row) -> float | None:
    """Mean power of one card, averaged over the cards."""
    return _over_cards(row.cards, lambda card: card.power_mean_w)


def utilisation_percent(row: Row) -> float | None:
    """Mean utilisation, averaged over the cards."""
    return _over_cards(row.cards, lambda card: card.utilisation_percent)


def power_share(record: Record, row: Row) -> float | None:
    """Mean power of the cards as a share of their limit."""
    limits = [card.power_limit_w for card in record.machine.cards if card.power_limit_w]
    power = power_w(row)
    return power / (sum(limits) / len(limits)) if limits and power is not None else None


def failures(point: Point) -> int | None:
    """Requests that did not finish; None: nobody wrote down how many were sent, or finished."""
    known = [(row.prompts, row.completed) for row in point.rows]
    lost = [sent - done for sent, done in known if sent is not None and done is not None]
    return sum(lost) if lost else None


def power_words(record: Record, point: Point) -> str:
    """`250 W, 42 % of the limit`, or that it was not measured."""
    power, share = point.value(power_w), point.value(lambda row: power_share(record, row))
    if power is None:
        return "not measured"
    return f"{power.mean:,.0f} W" + (f", {share.mean:.0%} of the limit" if share else "")


def single_stream(record: Record) -> Point | None:
    """The point with one client: the latency that one user sees. None: not measured."""
    return next((point for point in points(record) if point.concurrency == 1), None)


def is_warm(record: Record) -> bool | None:
    """Whether every shape was run before a row of it counted; None: not recorded."""
    if record.warm_ups is None:
        return None
    warm = {(one.concurrency, one.input_tokens, one.output_tokens) for one in record.warm_ups if one.requests}
    return all(point.key in warm for point in points(record))


def warm_up_words(record: Record) -> str:
    """`each of 3 shapes, 41 requests in 12 s`, or that it was not so."""
    if record.warm_ups is None:
        return "not recorded"
    shapes = len(points(record))
    requests = sum(one.requests or 0 for one in record.warm_ups)
    seconds = sum(one.duration_s or 0 for one in record.warm_ups)
    if not requests:
        return "none"
    which = f"each of {shapes} shapes" if is_warm(record) else f"not each of {shapes} shapes"
    return f"{which}, {requests} requests in {seconds:.0f} s"


def remarks(record: Record) -> list[str]:
    """What a reader should notice in this record alone."""
    found = []
    late = {row.concurrency: row.note for row in record.rows if row.note}
    found += [f"{'?' if clients is None else clients} clients: {note}" for clients, note in late.items()]
    rows = [row for row in record.rows if row.status == "complete"]
    busiest = max(rows, key=lambda row: row.output_tok_s or 0, default=None)
    share = power_share(record, busiest) if busiest else None
    if busiest and share is not None and share < 0.5:
        found.append(
            f"at its best row ({busiest.concurrency} clients) the cards drew {share:.0%} of their power limit: "
            "something else than their arithmetic sets the pace (host, interconnect, small batches)"
        )
    return found


def _typical(latency: Latency | None) -> float | None:
    if latency is None:
        return None
    return latency.median if latency.median is not None else latency.mean


def _over_cards(cards: list[CardLoad] | None, read: Callable[[CardLoad], float | None]) -> float | None:
    values = [value for card in cards or [] if (value := read(card)) is not None]
    return sum(values) / len(values) if values else None
