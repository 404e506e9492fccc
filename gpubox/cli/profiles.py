"""`gpubox profiles`: what can be served, and how two of them differ."""

import json

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from gpubox.remote import secrets
from gpubox.settings import profile
from gpubox.settings.profile import Profile
from gpubox.support import paths
from gpubox.support.errors import GpuboxError


@click.group()
def command() -> None:
    """List, show and compare profiles."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
def list_(as_json: bool) -> None:
    """All profiles, one line each."""
    found = [profile.load(name) for name in profile.names()]
    if not found:
        where = " or ".join(str(folder) for folder in paths.profile_folders())
        raise GpuboxError(f"no profiles below {where}", "one YAML file each", "install gpubox again")
    if as_json:
        click.echo(json.dumps([_summary(one) for one in found]))
        return
    stack = Column("stack", no_wrap=True)
    table = Table(Column("profile", no_wrap=True), "whose", "for", stack, "summary", box=None)
    for one in found:
        mark = "" if one.status == "current" else f" ({one.status})"
        table.add_row(one.name, profile.origin(one.name), one.purpose + mark, one.stack, escape(one.summary))
    Console().print(table)


@command.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One object, with what it extends merged in.")
def show(name: str, as_json: bool) -> None:
    """One profile, with its reasons."""
    found = profile.load(name)
    if as_json:
        click.echo(json.dumps(secrets.data(found.model_dump(mode="json")), indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False)
    cards = f", {found.cards.count} x {found.cards.model}" if found.cards else ""
    console.print(f"[bold]{escape(found.name)}[/]: {escape(found.summary)}")
    console.print(f"for {found.purpose}{cards}, stack {found.stack}, {found.status}")
    for title, values in _settings(found).items():
        table = Table(Column(title, no_wrap=True), *(Column(name, overflow="fold") for name in ("value", "why")))
        for key, value in values.items():
            table.add_row(key, escape(value), escape(_why(found, key)))
        console.print(table)
    for reason in found.reasons:
        if not any(reason.setting in values for values in _settings(found).values()):
            console.print(f"{escape(reason.setting)}: {escape(reason.why)} [dim]({escape(reason.source)})[/]")
    for note in found.notes:
        console.print(f"note: {escape(note)}")


@command.command()
@click.argument("left")
@click.argument("right")
@click.option("--all", "everything", is_flag=True, help="Also what is equal.")
@click.option("--json", "as_json", is_flag=True, help="setting -> [left, right]; null: not given.")
def diff(left: str, right: str, everything: bool, as_json: bool) -> None:
    """Flags and environment of two profiles, side by side; one flag under two names counts as one."""
    sides = profile.load(left), profile.load(right)
    rows = _rows(*sides)
    shown = {key: pair for key, pair in rows.items() if everything or pair[0] != pair[1]}
    if as_json:
        click.echo(json.dumps(shown, indent=1))
        return
    table = Table(Column("setting", no_wrap=True), *(Column(name, overflow="fold") for name in (left, right)))
    for key, pair in shown.items():
        style = None if pair[0] == pair[1] else "bold"
        table.add_row(key, *(escape("-" if value is None else value) for value in pair), style=style)
    Console(highlight=False).print(table)
    click.echo(f"{len(shown)} shown, {sum(a == b for a, b in rows.values())} equal")


def _summary(one: Profile) -> dict[str, str]:
    return {
        "name": one.name,
        "origin": profile.origin(one.name),
        "summary": one.summary,
        "stack": one.stack,
        "status": one.status,
    }


def _rows(left: Profile, right: Profile) -> dict[str, tuple[str | None, str | None]]:
    a, b = _canonical(left), _canonical(right)
    return {key: (a.get(key), b.get(key)) for key in dict.fromkeys([*a, *b])}


def _canonical(one: Profile) -> dict[str, str]:
    """Settings under one name each, so that --tp 8 equals --tp-size 8, and stack and purpose are compared too."""
    from gpubox.catalog import release
    from gpubox.settings import stack

    version = stack.load(one.stack, locked=False).sglang
    known = release.load(version) if version in release.versions() else None
    flat = {"stack": one.stack, "purpose": one.purpose}
    for name, value in _settings(one)["flag"].items():
        found = known.find(name) if known else None
        flat["--" + (max(found.names, key=len) if found else name)] = value
    return flat | _settings(one)["environment"]


def _settings(one: Profile) -> dict[str, dict[str, str]]:
    given = {k: v for k, v in one.flags.items() if v is not None and v is not False}
    flags = {name: _text(secrets.data(value, f"--{name}")) for name, value in given.items()}
    return {"flag": flags, "environment": secrets.environment(one.environment)}


def _text(value: object) -> str:
    if value is True:
        return "yes"
    return " ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _why(found: Profile, setting: str) -> str:
    return "; ".join(f"{r.why} ({r.source})" for r in found.reasons if r.setting == setting)
