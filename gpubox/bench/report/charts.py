"""The charts of a report, as SVG whose colours are the page's own."""

import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from gpubox.bench import show, summary
from gpubox.bench.record import Record, Row

COLOURS = 8
"""How many runs can be told apart: the page defines --run-0 to --run-7."""
_MARKERS, _DASHES = "osD^vP*X", ("-", "--", "-.", ":")
Lines = list[tuple[int, list[tuple[int, float, float, float]]]]
_TEXT, _GRID = "#010203", "#010204"
_SIZE = (4.6, 3.2)
_WIDTH, _DIGIT, _GAP = 3.4, 0.085, 0.05
"""Inches: of the axis without its margins, of a digit below it, between two numbers."""


@dataclass(frozen=True)
class Chart:
    """A drawn chart."""

    title: str
    svg: str
    """Empty: there is nothing to draw."""
    note: str = ""


def draw(records: Sequence[Record]) -> list[Chart]:
    """Throughput, time to the first token, time per token and power against the number of clients."""
    return [
        _chart("Output throughput, tok/s", records, summary.output_tok_s, log_y=False),
        _chart("Time to the first token (median), ms", records, summary.ttft_ms, log_y=True),
        _chart("Time per output token (median), ms", records, summary.tpot_ms, log_y=True),
        _chart("Power of one card (mean), W", records, summary.power_w, log_y=False),
    ]


def sample(i: int) -> str:
    """The line of run `i` as it is drawn in the charts, for a legend."""
    figure = Figure(figsize=(0.5, 0.2))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    figure.patch.set_alpha(0)
    axes.plot([0, 1, 2], [0, 0, 0], markevery=[1], **_style(i))
    return _themed(_svg(figure, f"line {i}"), "", [i])


def _chart(title: str, records: Sequence[Record], read: Callable[[Row], float | None], log_y: bool) -> Chart:
    lines = [(i, _line(record, read)) for i, record in enumerate(records)]
    if not any(line for _, line in lines):
        return Chart(title, "", _note(records, lines, read))
    with mpl.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        for i, line in lines:
            _plot(axes, i, line)
        _dress(axes, sorted({x for _, line in lines for x, *_ in line}), log_y)
        drawn = _svg(figure, title)
    return Chart(title, _themed(drawn, title, range(len(records))), _note(records, lines, read))


def _svg(figure: Figure, salt: str) -> str:
    with mpl.rc_context({"svg.hashsalt": salt}):  # ids of different drawings must not meet in one page
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _note(records: Sequence[Record], lines: Lines, read: Callable[[Row], float | None]) -> str:
    """Which runs have no line, and why."""
    absent = [records[i] for i, line in lines if not line]
    best = [(run.label, max((v for row in run.rows if (v := read(row)) is not None), default=None)) for run in absent]
    parts = {
        "not measured": [label for label, value in best if value is None],
        "for an unknown number of clients": [f"{label} ({show.number(v)})" for label, v in best if v is not None],
    }
    return "; ".join(f"{words}: {', '.join(labels)}" for words, labels in parts.items() if labels)


def _line(record: Record, read: Callable[[Row], float | None]) -> list[tuple[int, float, float, float]]:
    """Clients, mean, lowest and highest of each point that is a result."""
    found = [(point.concurrency, point.value(read)) for point in summary.points(record) if not point.partial]
    return [(x, value.mean, value.low, value.high) for x, value in found if x is not None and value is not None]


def _plot(axes: Axes, i: int, line: list[tuple[int, float, float, float]]) -> None:
    x, mean = [point[0] for point in line], [point[1] for point in line]
    spread = [[point[1] - point[2] for point in line], [point[3] - point[1] for point in line]]
    axes.errorbar(x, mean, yerr=spread, capsize=3, **_style(i))


def _style(i: int) -> dict[str, Any]:
    marker, dash = _MARKERS[i % len(_MARKERS)], _DASHES[i % len(_DASHES)]
    return {"color": _colour(i), "marker": marker, "linestyle": dash, "markersize": 5, "linewidth": 1.8}


def _dress(axes: Axes, clients: list[int], log_y: bool) -> None:
    axes.set_xscale("log", base=2)
    shown = _apart(clients)
    axes.set_xticks(clients, [f"{value:,}" if value in shown else "" for value in clients])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("clients", color=_TEXT)
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(_locator(*axes.get_ylim()))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.tick_params(colors=_TEXT)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.patch.set_alpha(0)
    axes.figure.patch.set_alpha(0)
    for side in axes.spines.values():
        side.set_color(_GRID)


def _apart(clients: list[int]) -> list[int]:
    """Those whose numbers do not meet on the axis; powers of two go first."""
    octaves = math.log2(clients[-1] / clients[0]) or 1
    shown: list[int] = []
    for value in sorted(clients, key=lambda value: (value & (value - 1) != 0, -value)):
        places = [(abs(math.log2(value / other)) / octaves * _WIDTH, f"{value:,}{other:,}") for other in shown]
        if all(distance >= len(digits) / 2 * _DIGIT + _GAP for distance, digits in places):
            shown.append(value)
    return shown


def _locator(low: float, high: float) -> LogLocator:
    """A few numbers in a wide range and in a narrow one."""
    decades = math.log10(high / low)
    return LogLocator(subs=(1,) if decades > 2.5 else (1, 2, 5) if decades > 0.8 else range(1, 10), numticks=12)


def _themed(svg: str, title: str, runs: Iterable[int]) -> str:
    """The drawing alone, its colours as the page's variables, and its title for those who do not see it."""
    drawing = svg[svg.index("<svg") :]
    for colour, name in [(_TEXT, "text"), (_GRID, "grid"), *((_colour(i), f"run-{i}") for i in runs)]:
        drawing = drawing.replace(colour, f"var(--{name})")
    head, _, rest = drawing.partition(">")
    return f'{head} role="img" aria-label="{title}">{rest}' if title else f'{head} aria-hidden="true">{rest}'


def _colour(i: int) -> str:
    """A colour that stands for the page's own, which no drawing would have by chance."""
    return f"#0a0b{i:02x}"
