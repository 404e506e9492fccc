"""`gpubox rollback`: back to a release that answered before."""

from pathlib import Path

import click


@click.command()
@click.argument("host")
@click.argument("release", required=False)
@click.option("--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py.")
def command(host: str, release: str | None, path: Path | None) -> None:
    """Let HOST serve an earlier RELEASE, and wait until it answers.

    Without RELEASE: the last one that answered and is not current. The next deploy goes forward again to what the
    profile says: change that, too, if the old one is to stay.
    """
    from gpubox import inventory
    from gpubox.errors import GpuboxError
    from gpubox.operations import watch
    from gpubox.server import readiness, remote

    box = inventory.load(path).box(host)
    found = remote.state(box)
    digest = found.named(release) if release else ""
    asked = [one["probe"] for one in found.releases if one["digest"] in {found.current, digest or found.previous}]
    client = remote.Watch(box, asked)
    now = remote.act(box, "rollback", digest)
    click.echo(f"{host}: release {now.current}")
    event = {"event": "cannot-tell", "cause": "the probe said nothing"}
    for event in remote.wait(box, now.one(now.current or "")["probe"]):
        if event["event"] == "phase":
            click.echo(f"  {event['phase']} (after {event['at_s']} s)")
    if event["event"] != "ready":
        client.end()
        raise GpuboxError(
            f"{host}: release {now.current} is not ready: {readiness.story(event)}", "", "gpubox releases"
        )
    remote.act(box, "verified", now.current or "")
    if seen := client.end():
        click.echo(watch.said(seen))
    click.echo(f"{host}: release {now.current} answers")
