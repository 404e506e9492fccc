"""gpubox report: one HTML page about runs."""

from pathlib import Path

import click

from gpubox.bench import library
from gpubox.cli._files import OutputFile
from gpubox.support.errors import GpuboxError


@click.command()
@click.argument("runs_to_show", nargs=-1, metavar="[RUN...]")
@click.option("--output", type=OutputFile(), default="report.html", show_default=True)
@click.option("--runs", type=click.Path(file_okay=False, path_type=Path), default="runs", show_default=True)
def command(runs_to_show: tuple[str, ...], output: Path, runs: Path) -> None:
    """Write one self-contained HTML page: charts, tables, settings, findings. It works offline and on a phone.

    RUN as `gpubox compare` takes it; the first one is what the others are compared with. Default: the newest runs
    below runs/.
    """
    from gpubox.bench import report  # here: matplotlib costs a second that `--help` need not pay

    records = [library.find(name, runs) for name in runs_to_show] or library.measured(runs)[-report.FEW :]
    if not records:
        raise GpuboxError(
            f"no runs in {runs}/", "a run to show", "measure one: gpubox bench HOST, or see gpubox compare --list"
        )
    report.write(records, output)
    click.echo(output)
