"""The charts of a report, as SVG whose colours are the page's own."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from gpubox.bench import summary
from gpubox.bench.record import Record, Row

COLOURS = 8
"""How many runs can be told apart: the page defines --run-0 to --run-7."""
_MARKERS, _DASHES = "osD^vP*X", ("-", "--", "-.", ":")
_TEXT, _GRID = "#010203", "#010204"
_SIZE = (4.6, 3.2)


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


def _chart(title: str, records: Sequence[Record], read: Callable[[Row], float | None], log_y: bool) -> Chart:
    lines = [(i, _line(record, read)) for i, record in enumerate(records)]
    missing = [records[i].label for i, line in lines if not line]
    note = f"not measured: {', '.join(missing)}" if missing else ""
    if len(missing) == len(records):
        return Chart(title, "", note)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 10}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        for i, line in lines:
            _plot(axes, i, line)
        _dress(axes, sorted({x for _, line in lines for x, *_ in line}), log_y)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return Chart(title, _themed(out.getvalue(), title, len(records)), note)


def _line(record: Record, read: Callable[[Row], float | None]) -> list[tuple[int, float, float, float]]:
    """Clients, mean, lowest and highest of each point that is a result."""
    found = [(point.concurrency, point.value(read)) for point in summary.points(record) if not point.partial]
    return [(x, value.mean, value.low, value.high) for x, value in found if x is not None and value is not None]


def _plot(axes: Axes, i: int, line: list[tuple[int, float, float, float]]) -> None:
    x, mean = [point[0] for point in line], [point[1] for point in line]
    spread = [[point[1] - point[2] for point in line], [point[3] - point[1] for point in line]]
    axes.errorbar(
        x,
        mean,
        yerr=spread,
        color=_colour(i),
        marker=_MARKERS[i % len(_MARKERS)],
        linestyle=_DASHES[i % len(_DASHES)],
        markersize=5,
        linewidth=1.8,
        capsize=3,
    )


def _dress(axes: Axes, clients: list[int], log_y: bool) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(clients, [f"{value:,}" for value in clients])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("clients", color=_TEXT)
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.tick_params(colors=_TEXT)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.patch.set_alpha(0)
    axes.figure.patch.set_alpha(0)
    for side in axes.spines.values():
        side.set_color(_GRID)


def _themed(svg: str, title: str, runs: int) -> str:
    """The drawing alone, its colours as the page's variables, and its title for those who do not see it."""
    drawing = svg[svg.index("<svg") :]
    for colour, name in [(_TEXT, "text"), (_GRID, "grid"), *((_colour(i), f"run-{i}") for i in range(runs))]:
        drawing = drawing.replace(colour, f"var(--{name})")
    head, _, rest = drawing.partition(">")
    return f'{head} role="img" aria-label="{title}">{rest}'


def _colour(i: int) -> str:
    """A colour that stands for the page's own, which no drawing would have by chance."""
    return f"#0a0b{i:02x}"
