"""`gpubox check`: judge an inventory by everything that is known, without touching a host."""

import json
import sys
from pathlib import Path

import click


@click.command()
@click.option(
    "--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
@click.option("--host", "host", help="Only this box.")
@click.option("--json", "as_json", is_flag=True, help="A list of findings, host in every record.")
def command(path: Path | None, host: str | None, as_json: bool) -> None:
    """Judge every box of an inventory by the rules; no host is touched.

    Exit codes: 0 clean, 1 findings of severity error, 2 something could not be judged.
    """
    from rich.console import Console

    from gpubox import rules
    from gpubox.inventory import default_path, read
    from gpubox.rules.finding import Finding

    found = read(path or default_path())
    if host and host not in found.boxes and not found.problems:
        found.box(host)  # an error that names the known ones
    boxes = [box for box in found.boxes.values() if host in {None, box.name}]
    findings = [
        Finding("inventory", "error", problem.host, problem.found, problem.needed, problem.todo, ())
        for problem in found.problems
    ]
    for box in boxes:
        findings += rules.check(box)
    if as_json:
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=1))
    else:
        rules.report(findings, Console())
        errors = sum(finding.severity == "error" for finding in findings)
        counts = (len(boxes), "box", "boxes"), (len(findings), "finding", "findings"), (errors, "error", "errors")
        click.echo(", ".join(f"{number} {one if number == 1 else many}" for number, one, many in counts))
    sys.exit(rules.exit_code(findings))
