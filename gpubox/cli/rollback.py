"""`gpubox rollback`: back to a release that answered before."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpubox.cli._complete import hosts

if TYPE_CHECKING:
    from gpubox.facts.release import Releases
    from gpubox.hosts import Box


@click.command()
@click.argument("host", shell_complete=hosts)
@click.argument("release", required=False)
@click.option(
    "--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
def command(host: str, release: str | None, path: Path | None) -> None:
    """Let HOST serve an earlier RELEASE, and wait until it answers; if it does not, what served before is put back.

    Without RELEASE: the last one that answered and is not current. The next deploy goes forward again to what the
    profile says: change that, too, if the old one is to stay.
    """
    from gpubox import inventory
    from gpubox.operations import watch
    from gpubox.server import remote
    from gpubox.support.errors import GpuboxError

    box = inventory.load(path).box(host)
    found = remote.state(box)
    digest = found.named(release) if release else ""
    client = remote.Watch(box, [one["probe"] for one in found.releases if one["probe"]])
    failure = _failure(box, remote.act(box, "rollback", digest))
    if failure and found.current:
        click.echo(f"{failure}\n{host}: back to release {found.current}", err=True)
        failure = _failure(box, remote.act(box, "switch", found.current)) or "what served before serves again"
    if seen := client.end():
        click.echo(watch.said(seen))
    if failure:
        raise GpuboxError(f"{host}: nothing was rolled back: {failure}")


def _failure(box: "Box", now: "Releases") -> str | None:
    """Why the release that is current now does not answer; None: it does, and that is written down."""
    from gpubox.facts import release
    from gpubox.server import readiness, remote

    digest = now.current or ""
    click.echo(f"{box.name}: release {digest}")
    event = {"event": "cannot-tell", "cause": "the probe said nothing"}
    asked = {**now.one(digest)["probe"], **release.main_process(digest), "restarts": 0}
    for event in remote.wait(box, asked):
        if event["event"] == "phase":
            click.echo(f"  {event['phase']} (after {event['at_s']} s)")
        elif event["event"] == "waiting":
            click.echo(f"  waiting: {readiness.beat(event)}")
    if event["event"] != "ready":
        return f"release {digest} is not ready: {readiness.story(event)}"
    remote.act(box, "verified", digest)
    click.echo(f"{box.name}: release {digest} answers")
    return None
