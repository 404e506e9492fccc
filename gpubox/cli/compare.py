"""gpubox compare: runs side by side, by command instead of by eye."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from gpubox.bench import compare as comparing
from gpubox.bench import library
from gpubox.bench.compare import Comparison, Ratio
from gpubox.bench.differences import Difference, differences
from gpubox.bench.record import Record
from gpubox.bench.show import number


@click.command()
@click.argument("runs_to_compare", nargs=-1, metavar="RUN RUN...")
@click.option("--runs", type=click.Path(file_okay=False, path_type=Path), default="runs", show_default=True)
@click.option("--list", "only_list", is_flag=True, help="List the runs that can be named.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparisons.")
def command(runs_to_compare: tuple[str, ...], runs: Path, only_list: bool, as_json: bool) -> None:
    """Compare runs with the first one: settings, results with their noise, and what probably made the difference.

    \b
    RUN: a folder or label below runs/, a reference that ships with gpubox (--list), or other people's files: an SGLang
    server log (its `server_args=` line), what bench_serving wrote (text or JSONL), or a folder with such files.
    """
    if only_list:
        click.echo(_listing(runs, as_json), nl=False)
        return
    if len(runs_to_compare) < 2:
        raise click.UsageError("two runs at least (--list shows which there are)")
    records = [library.find(name, runs) for name in runs_to_compare]
    found = [comparing.compare(records[0], other) for other in records[1:]]
    click.echo(_as_json(found) if as_json else _text(records, found), nl=False)


def _as_json(found: Sequence[Comparison]) -> str:
    return json.dumps([comparison.model_dump() for comparison in found], indent=1) + "\n"


def _listing(runs: Path, as_json: bool) -> str:
    known = [*library.measured(runs), *library.references()]
    if as_json:
        keys = {"id", "label", "kind", "source", "started", "verdict"}
        return json.dumps([record.model_dump(include=keys) for record in known], indent=1) + "\n"
    table = Table("run", "kind", "rows", "best tok/s", "source")
    for record in known:
        best = max((row.output_tok_s or 0 for row in record.rows), default=0)
        table.add_row(record.id, record.kind, str(len(record.rows)), number(best), record.source)
    return _rendered(table)


def _text(records: Sequence[Record], found: Sequence[Comparison]) -> str:
    parts = [_rendered(_settings(records, differences(records)))]
    parts += [_comparison(comparison) for comparison in found]
    return "\n".join(parts)


def _settings(records: Sequence[Record], settings: Sequence[Difference]) -> Table:
    table = Table(
        "setting", *(record.label for record in records), title="What differs in settings", title_justify="left"
    )
    for one in settings:
        shown = "different" if one.name == "topology" else None
        table.add_row(f"{one.kind} {one.name}", *("-" if value is None else shown or value for value in one.values))
    return table


def _comparison(found: Comparison) -> str:
    names = ("clients", found.base, found.other, "output", "TTFT", "TPOT", "power")
    table = Table(*names, title=f"{found.other} against {found.base}: output tok/s", title_justify="left")
    for line in found.lines:
        output = line.output_tok_s
        numbers = [number(output.base if output else None), number(output.other if output else None)]
        mark = " (partial)" if line.partial else ""
        ratios = [_words(ratio) for ratio in (line.ttft_ms, line.tpot_ms, line.power_w)]
        table.add_row(str(line.concurrency), *numbers, f"{output.words if output else '-'}{mark}", *ratios)
    text = [_rendered(table)] if found.lines else [f"{found.other} against {found.base}\n"]
    if found.best:
        clients = " and ".join("?" if number_ is None else str(number_) for number_ in found.best_clients)
        text.append(f"best rows ({clients} clients): {number(found.best.base)} and {number(found.best.other)} tok/s, ")
        text.append(f"{found.best.words}\n")
    text += [f"note: {caveat}\n" for caveat in found.caveats]
    for cause in found.causes:
        head = "cause, seen in these runs" if cause.strength == "seen" else "known to matter"
        values = " against ".join(value or "not set" for value in cause.values)
        text.append(f"{head}: {cause.setting} ({values})\n  {cause.why}\n")
        text += [f"  evidence: {line}\n" for line in cause.evidence]
    return "".join(text)


def _words(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio.ratio:.2f}" + (" (noise)" if ratio.within_noise else "")


def _rendered(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=130).print(table)
    return out.getvalue()
