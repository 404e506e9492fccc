"""`gpubox lab`: the practice machine, real LXC containers where only the GPU is stood in."""

import json
import os
import sys

import click
from rich.console import Console
from rich.table import Table

from gpubox.lab import hardware, lifecycle, network
from gpubox.lab.releases import RELEASES

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@click.group()
def command() -> None:
    """Practice machine: hypervisor and GPU boxes are real LXC containers; only the GPU is a stand-in (needs root)."""
    # who became root through plain `su` has a user's PATH, without Debian's folders of root's programs
    known = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*known, *(folder for folder in _SBIN if folder not in known)])


@command.command()
@click.option(
    "--boxes", type=click.IntRange(1, network.MAX_BOXES), help="GPU boxes gpu01 ... (default: as before, or 1)."
)
@click.option("--hardware", "described", metavar="NAME", help=f"One of: {', '.join(hardware.names())}.")
@click.option(
    "--release",
    type=click.Choice(list(RELEASES)),
    help="Debian release of all boxes (default: as before, or bookworm); a box of another one is made anew, bare. "
    "`gpubox lab reset NAME --release` changes one box.",
)
def up(boxes: int | None, described: str | None, release: str | None) -> None:
    """Bring it up, or complete what is missing; a second run changes nothing."""
    changes = lifecycle.up(boxes, described, release)
    click.echo(f"{len(changes)} steps changed something" if changes else "nothing changed")
    click.echo("GPU, driver and CUDA packages here are stand-ins; everything else is real")


@command.command()
@click.option("--purge", is_flag=True, help="Also remove cached layers, downloads and keys.")
def down(purge: bool) -> None:
    """Take it away: bridge, nft table and kernel settings as they were; caches stay."""
    lifecycle.down(purge)


@command.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def status(as_json: bool) -> None:
    """Show the containers; exit code 0 if all answer, 1 if not or if there is no lab."""
    rows = lifecycle.status()
    if as_json:
        click.echo(json.dumps(rows))
    elif rows:
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*(_word(value) for value in row.values()))
        Console().print(table)
    else:
        click.echo("no practice machine (gpubox lab up)")
    sys.exit(0 if rows and all(row["ssh"] for row in rows) else 1)


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(name: str, command: tuple[str, ...]) -> None:
    """Log in to NAME as root, or run COMMAND there."""
    line = lifecycle.ssh_command(name, command)
    os.execvp(line[0], line)  # noqa: S606 - the terminal is handed to ssh; no shell is involved


@command.command()
@click.argument("name")
@click.option("--release", type=click.Choice(list(RELEASES)), help="Of this Debian release from now on.")
def reset(name: str, release: str | None) -> None:
    """Give the bare box NAME back (pve01: the hypervisor's own root; its boxes keep theirs)."""
    click.echo(f"{name} is bare again after {lifecycle.reset(name, release):.1f} s")


@command.command("hardware")
@click.argument("name")
@click.argument("described", metavar="HARDWARE")
@click.option("--driver", metavar="VERSION", help="Another version of the kernel module than the description's.")
def box_hardware(name: str, described: str, driver: str | None) -> None:
    """Let the box NAME see HARDWARE instead of the lab's; the lab's own name takes it back."""
    changed = lifecycle.give_hardware(name, described, driver)
    click.echo(f"{name} sees {described} (stand-in)" if changed else "nothing changed")


@command.command(hidden=True)
def remajor() -> None:
    """Give the stand-in driver new dynamic majors, as after a reload (for tests of stale passthrough)."""
    click.echo(json.dumps(lifecycle.remajor()))


def _word(value: object) -> str:
    return {True: "answers", False: "silent"}[value] if isinstance(value, bool) else str(value)
