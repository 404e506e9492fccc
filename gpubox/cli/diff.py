"""`gpubox diff`: what differs between two releases of a box."""

import difflib
from pathlib import Path
from typing import Any

import click

from gpubox.cli._complete import hosts
from gpubox.remote import secrets


@click.command()
@click.argument("host", shell_complete=hosts)
@click.argument("one")
@click.argument("other")
@click.option(
    "--inventory", "path", type=click.Path(path_type=Path), help="Default: inventory/lxc.py, or the only one."
)
def command(host: str, one: str, other: str, path: Path | None) -> None:
    """Show what differs on HOST between the releases ONE and OTHER.

    A release is named by `current`, `previous` or the beginning of its digest. Secrets are not shown, only that they
    differ.
    """
    from gpubox import inventory
    from gpubox.server import remote

    found = remote.state(inventory.load(path).box(host))
    before, after = (found.one(found.named(name)) for name in (one, other))
    lines = difflib.unified_diff(described(before), described(after), before["digest"], after["digest"], "", "", 0, "")
    click.echo("\n".join([*lines, *changed_files(before, after)]) or "no difference")


def described(release: dict[str, Any]) -> list[str]:
    """A release as lines, each of which means something alone: a flag with its values, a variable."""
    made = [f"{key}: {value}" for key, value in release["made_from"].items()]
    words = secrets.argv(release["argv"])  # the box masks, too; this holds whatever it sent
    starts = [n for n, word in enumerate(words) if n == 0 or word.startswith("-")]
    flags = [" ".join(words[a:b]) for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]
    about = [f"venv: {release['venv']}", f"model revision: {release['revision']}"]
    return [*made, *about, *(flag.replace(release["digest"], "(release)") for flag in flags), *_variables(release)]


def changed_files(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs and is not shown line by line."""
    names = {"api-key": "the API key differs"}
    return [text for name, text in names.items() if before["files"].get(name) != after["files"].get(name)]


def _variables(release: dict[str, Any]) -> list[str]:
    return [_variable(line).replace(release["digest"], "(release)") for line in release["environment"]]


def _variable(line: str) -> str:
    name, equals, value = line.partition("=")
    plain = value.strip('"')
    shown = secrets.variable(name, plain)
    return line if shown == plain else f"{name}{equals}{shown}"
