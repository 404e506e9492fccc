"""A run for people: progress while it is measured, a table afterwards."""

import io
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from gpubox.bench import summary
from gpubox.bench.record import Record
from gpubox.bench.summary import Point, Value
from gpubox.remote.bench.plan import Plan


class Progress:
    """Progress on standard error: a moving bar on a terminal, one line an event elsewhere."""

    def __init__(self, name: str, plan: Plan) -> None:
        self._name, self._rows, self._seen = name, len(plan.concurrency) * plan.repeat, 0
        self._console = Console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bars = Bars(*columns, TimeElapsedColumn(), console=self._console, transient=True)
        self._task = self._bars.add_task("starting", total=None)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def event(self, event: dict[str, Any]) -> None:
        """Shows one event of the runner."""
        match event["event"]:
            case "progress":
                what = "warm-up" if event["warm_up"] else f"row {self._seen + 1}/{self._rows}"
                doing = f"{self._name}: {what}, {event['concurrency']} clients"
                self._bars.update(self._task, description=doing, completed=event["done"], total=event["of"])
            case "warm_up":
                took = f"{event['requests']} requests in {number(event['duration_s'])} s"
                self._say(f"warm-up: {event['concurrency']} clients, {took}")
            case "row":
                self._seen += 1
                self._say(f"row {self._seen}/{self._rows}: {_row_line(event)}")
            case "server":
                cap = f", at most {event['cap']} requests at once" if event.get("cap") else ""
                self._say(f"SGLang {event.get('version')} serves {event.get('model')}{cap}")
            case "stopping":
                self._say("stopping, with the record kept; up to a minute")
            case "machine" if event.get("cards_note"):
                self._say(f"cards {event['cards_note']}")

    def _say(self, text: str) -> None:
        self._console.print(f"{self._name}: {text}", highlight=False, markup=False, soft_wrap=True)


def table(record: Record) -> str:
    """The record's points as text: means over the repeats, partial points marked."""
    out = Table(title=f"{record.label}: {record.verdict}", title_justify="left")
    for name in (
        "clients",
        "output tok/s",
        "total tok/s",
        "req/s",
        "TTFT ms",
        "TPOT ms",
        "ITL p99 ms",
        "a card",
        "failed",
    ):
        out.add_column(name, justify="right")
    for point in summary.points(record):
        out.add_row(*_cells(record, point))
    text = io.StringIO()
    console = Console(file=text, width=110)
    console.print(out)
    for remark in [
        *_single(record),
        f"warm-up: {summary.warm_up_words(record)}",
        *summary.remarks(record),
        *(record.notes[:5]),
    ]:
        console.print(f"- {remark}", highlight=False, markup=False)
    return text.getvalue()


def number(value: float | None) -> str:
    """Three digits that matter, thousands with commas; a dash for what was not recorded."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def with_spread(value: Value | None) -> str:
    """`1,950 ±3 %`."""
    return f"{number(value.mean)} {value.spread}".strip() if value else "-"


def _cells(record: Record, point: Point) -> list[str]:
    mark = " (partial)" if point.partial else ""
    values = (
        lambda row: row.total_tok_s,
        lambda row: row.requests_s,
        summary.ttft_ms,
        summary.tpot_ms,
        lambda row: row.itl_ms.p99 if row.itl_ms else None,
    )
    plain = [number(found.mean if (found := point.value(read)) else None) for read in values]
    clients = "?" if point.concurrency is None else str(point.concurrency)
    spread = with_spread(point.value(summary.output_tok_s))
    return [
        clients,
        f"{spread}{mark}",
        *plain,
        summary.power_words(record, point).removesuffix(" of the limit"),
        "-" if (lost := summary.failures(point)) is None else str(lost),
    ]


def _row_line(row: dict[str, Any]) -> str:
    ttft = (row.get("ttft_ms") or {}).get("median")
    said = f"{row['concurrency']} clients, {number(row['output_tok_s'])} output tok/s, TTFT {number(ttft)} ms"
    return said if row["status"] == "complete" else f"{said} ({row['status']}: {row['problem']})"


def _single(record: Record) -> list[str]:
    point = summary.single_stream(record)
    if point is None:
        return ["single-stream latency: not measured (no row with one client)"]
    rate, ttft = point.value(summary.output_tok_s), point.value(summary.ttft_ms)
    return [f"a single stream: {with_spread(rate)} tok/s, first token after {with_spread(ttft)} ms"]
