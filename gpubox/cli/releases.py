"""`gpubox releases`: what a box has served, serves, and can go back to."""

import json
from pathlib import Path

import click

from gpubox.cli._complete import hosts


@click.command()
@click.argument("host", shell_complete=hosts)
@click.option(
    "--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
@click.option("--json", "as_json", is_flag=True, help="{host, current, previous, runs, releases: [...]}")
def command(host: str, path: Path | None, as_json: bool) -> None:
    """List the releases on HOST. Nothing is changed."""
    from dataclasses import asdict

    from gpubox import inventory
    from gpubox.server import remote

    found = remote.state(inventory.load(path).box(host))
    if as_json:
        for release in found.releases:
            release.pop("files", None)  # the digest of a short API key's file would give the key to who tries some
        click.echo(json.dumps({"host": host, **asdict(found)}, indent=1))
        return
    for release in sorted(found.releases, key=lambda one: one["verified"] or "", reverse=True):
        digest, made = release["digest"], release["made_from"]
        links = [
            name for name, target in {"current": found.current, "previous": found.previous}.items() if target == digest
        ]
        marks = ", ".join([*links, *(["runs"] if found.runs == digest else [])])
        answered = f"answered {release['verified'][:19]}" if release["verified"] else "never answered"
        by = f"  by {release['by']}" if release["by"] else ""
        what = f"{made.get('profile', '?')} on {made.get('stack', '?')}{by}"
        click.echo(f"{digest}  {answered}  {what}  {marks}".rstrip())
    if not found.releases:
        click.echo(f"{host} has no releases: deploy first")
