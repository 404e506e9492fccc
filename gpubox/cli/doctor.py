"""`gpubox doctor`: is a box as its data says, and does it serve."""

import json
import sys
from pathlib import Path

import click

from gpubox.cli._complete import hosts


@click.command()
@click.argument("host", required=False, shell_complete=hosts)
@click.option("--all", "everyone", is_flag=True, help="Every box of the inventory.")
@click.option(
    "--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
@click.option("--json", "as_json", is_flag=True, help='{"checks": [{host, id, status, found, needed, cure}]}')
@click.option("--deep", is_flag=True, help="Also read every file that gpubox put there: seconds to minutes.")
@click.option("--bundle", type=click.Path(path_type=Path), help="Write a redacted archive (.tar.gz).")
def command(
    host: str | None, everyone: bool, path: Path | None, as_json: bool, deep: bool, bundle: Path | None
) -> None:
    """Ask HOST whether it is as its data says, and whether its server answers. Nothing is changed.

    One line a check: pass, FAIL, warn or unknown (could not be told), with its cure.

    Exit codes: 0 nothing failed, 1 a check failed, 2 one could not be told.
    """
    from rich.console import Console

    from gpubox import inventory
    from gpubox.doctor import bundle as bundles
    from gpubox.doctor.check import exit_code
    from gpubox.doctor.examine import examine
    from gpubox.doctor.show import show

    if everyone == bool(host):
        raise click.UsageError("give a HOST or --all")
    if bundle is not None:
        bundles.check(bundle)
    found = inventory.load(path)
    reports = examine(found, found.boxes.values() if everyone else [found.box(str(host))], deep)
    checks = [check for report in reports for check in report.checks]
    if bundle is not None:
        bundles.write(reports, bundle)
    if as_json:
        click.echo(json.dumps({"checks": [check.as_json() for check in checks]}, indent=1))
    else:
        show(checks, Console())
    if bundle is not None:
        click.echo(f"bundle: {bundle}", err=True)
    sys.exit(exit_code(checks))
