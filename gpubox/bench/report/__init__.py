"""One HTML page about runs: self-contained, without scripts, so that it works offline, on a phone, light and dark.

Charts are matplotlib's SVG, inline: some 30 kB each. Plotly would bring 3-4 MB of script into every page and would need
more script for the dark mode; all that is lost without it are tooltips, and every figure stands in the tables.
"""

from collections.abc import Sequence
from pathlib import Path

import jinja2

from gpubox.bench import show, summary
from gpubox.bench.compare import Comparison, compare
from gpubox.bench.differences import cards, differences, version
from gpubox.bench.record import Record, Row
from gpubox.bench.report import charts
from gpubox.support import files
from gpubox.support.errors import GpuboxError

FEW = 8
"""Runs in one page at most: more lines in a chart than that cannot be told apart."""


def page(records: Sequence[Record]) -> str:
    """The page about these runs; the first one is what the others are compared with. Error: none, or too many."""
    if not 0 < len(records) <= FEW:
        raise GpuboxError(f"{len(records)} runs for one report", f"1 to {FEW}: name the ones that matter")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        runs=records,
        charts=charts.draw(records),
        samples=[charts.sample(i) for i in range(len(records))],
        comparisons=[compare(records[0], other) for other in records[1:]],
        settings=differences(records) if len(records) > 1 else [],
        points=summary.points,
        about=_about,
        findings=_findings,
        cells=_cells,
        number=show.number,
        clients=_clients,
    )


def write(records: Sequence[Record], path: Path) -> None:
    """Writes the page, whole or not at all."""
    files.check_file(path)
    files.write(path, page(records))


def _about(record: Record) -> list[str]:
    """What one should know of a run, in few words."""
    parts = [f"SGLang {version(record)}" if version(record) else None, record.server.model, cards(record)]
    note = f"cards {record.machine.cards_note}" if record.machine.cards_note else None
    warm_up = f"warm-up: {summary.warm_up_words(record)}" if record.rows else None
    return [part for part in [*parts, note, warm_up, record.source, record.started] if part]


def _findings(record: Record) -> list[str]:
    problem = [f"{record.verdict}: {record.problem}"] if record.problem else []
    return [*problem, *summary.remarks(record), *record.notes]


def _cells(record: Record, point: summary.Point) -> list[str]:
    used = point.value(summary.utilisation_percent)
    plain = (lambda row: row.total_tok_s, lambda row: row.requests_s, _itl_p99)
    total, requests, itl = (show.number(value.mean if (value := point.value(read)) else None) for read in plain)
    return [
        show.with_spread(point.value(summary.output_tok_s)),
        total,
        requests,
        show.with_spread(point.value(summary.ttft_ms)),
        show.with_spread(point.value(summary.tpot_ms)),
        itl,
        summary.power_words(record, point),
        f"{used.mean:.0f} %" if used else "not measured",
        ("-" if (lost := summary.failures(point)) is None else str(lost)),
    ]


def _itl_p99(row: Row) -> float | None:
    return row.itl_ms.p99 if row.itl_ms else None


def _clients(comparison: Comparison) -> str:
    return " and ".join("?" if value is None else f"{value:,}" for value in comparison.best_clients)
