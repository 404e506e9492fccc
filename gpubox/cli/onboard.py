"""`gpubox onboard`: from an address to an inventory."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from gpubox import inventory, rules
from gpubox.cli import _errors
from gpubox.hosts import Box
from gpubox.onboard import adoption, card, files, probe, secrets, several
from gpubox.onboard.adoption import Adopted
from gpubox.onboard.findings import findings, silent, source
from gpubox.onboard.login import login
from gpubox.onboard.plan import Looked, Target, changes, container_of
from gpubox.onboard.proposals import Proposal, proposals
from gpubox.rules.finding import Finding
from gpubox.support import files as support_files
from gpubox.support import paths
from gpubox.support.errors import GpuboxError
from gpubox.support.hanging_indent import hanging

_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)
"""Whole, for it is written down: the inventory is used from other folders too."""


@click.command()
@click.argument("address")
@click.option("--via", metavar="ADDRESS", help="The hypervisor that holds the box as a container; same login and key.")
@click.option("--name", help="What to call the box. Default: its host name.")
@click.option("--user", default="root", show_default=True, help="Login; other than root: with sudo without a password.")
@click.option("--port", type=click.IntRange(1, 65535), help="Of the box's ssh.")
@click.option("--key", type=_FILE, help="Private key of ssh.")
@click.option("--known-hosts", type=click.Path(dir_okay=False, resolve_path=True), help="Default: ~/.ssh/known_hosts.")
@click.option("--profile", help="What to serve. Asked; default: the first that fits.")
@click.option("--adopt/--no-adopt", default=None, help="Make a running server a profile. Asked; default: yes.")
@click.option("--server", type=int, metavar="PID", help="Which of several running servers to adopt.")
@click.option("--profile-name", help="Name of the adopted profile. Default: the box's.")
@click.option("--stack", help="Move an adopted server to this stack. Default: one of its own release.")
@click.option("--api-key-file", type=_FILE, help="File with the key that the server's clients must give.")
@click.option("--private-network", is_flag=True, help="Nobody else reaches a server that has no API key. Asked.")
@click.option("--cuda-source", metavar="URL", help="Mirror of NVIDIA's packages.")
@click.option("--cuda-keyring", type=_FILE, help="Its cuda-keyring package.")
@click.option("--inventory", "path", type=click.Path(path_type=Path), help="To write to. Default: inventory/NAME.py.")
@click.option("--yes", is_flag=True, help="Write without asking; every question takes its default.")
@click.option("--dry", is_flag=True, help="Look and propose; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="One object: card, findings, proposals, files. Asks nothing.")
def command(address: str, **given: Any) -> None:
    """Look at a machine, propose what it can serve, and write an inventory for it. ADDRESS: [USER@]HOST[:PORT].

    Looking changes nothing there. Files are shown as a diff first and never written over what is there.
    Without a terminal nothing is asked, and nothing written but with --yes.

    Exit codes: 0 done, 1 a finding stands against it or no profile fits, 2 the machine could not be looked at.
    """
    console = Console(stderr=given["as_json"], soft_wrap=False)
    _need_project(given)
    _check_writable(given)
    looked = _look(address, given)
    name = looked.target.name
    if not given["as_json"]:
        card.show(name, looked.box, looked.above, looked.choice, console)
    path = given["path"] or paths.project() / "inventory" / f"{name}.py"
    there = inventory.read(path).boxes.get(name) if path.exists() else None
    adopted = _adopted(looked, given, there, console)
    found = findings(name, looked.box, looked.above)
    seen = source(looked.box, looked.above)
    listed = proposals(looked.data(), looked.box.facts(seen), silent(looked.box, looked.above), seen)
    if not given["as_json"]:
        _print(found, listed, console)
    profile = there.settings.profile if there else _profile(listed, adopted, given, name)
    private = not there and _private(listed, profile, adopted, given)
    wanted = changes(looked, profile, adopted, path, private, given["api_key_file"]) if profile else []
    if not given["as_json"]:
        for change in wanted:
            files.diff(change, console)
    written = _write(looked, wanted, adopted, path, given)
    if path.exists() and name in inventory.read(path).boxes:
        judged = rules.check(inventory.load(path).box(name), looked.box.facts(seen))
        if not given["as_json"]:
            rules.report([finding for finding in judged if finding.severity == "error"], console)
        found += judged
    if given["as_json"]:
        click.echo(json.dumps(_record(looked, found, listed, profile, written), indent=1))
    _end(found, profile, bool(wanted and not written), path, given, console)


def _need_project(given: dict[str, Any]) -> None:
    """Somewhere to write to. Error, before the machine is asked anything: not in a project, and no file named."""
    folder = paths.project() / "inventory"
    if not given["path"] and not given["dry"] and not folder.is_dir():
        todo = "gpubox init FOLDER, then cd FOLDER; or --inventory FILE; --dry only looks"
        raise GpuboxError(f"no folder {folder} to write the inventory to", "a project", todo)


def _check_writable(given: dict[str, Any]) -> None:
    """Before the machine is asked: what this run may write can be written."""
    if given["path"] and not given["dry"]:
        support_files.check_file(given["path"], "--inventory", makes_folders=True)
    elif given["path"] and given["path"].is_dir():
        raise GpuboxError(f"--inventory {given['path']} is a folder", "the path of a file")
    if given["yes"] and not given["dry"]:
        for folder in (paths.project() / "inventory", paths.profiles(), secrets.folder()):
            support_files.check_folder(folder)


def _look(address: str, given: dict[str, Any]) -> Looked:
    keys = {"ssh_key": given["key"], "ssh_known_hosts_file": given["known_hosts"]}
    told = {key: value for key, value in keys.items() if value}
    here = login(address, given["user"], given["port"], told)
    via = login(given["via"], given["user"], None, told) if given["via"] else None
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(probe.box, here.address, here.connection)
        above = pool.submit(probe.hypervisor, via.address, via.connection).result() if via else None
        box = asked.result()
    origin = {"uri": given["cuda_source"], "keyring": given["cuda_keyring"]}
    cuda = {"source": {key: value for key, value in origin.items() if value}} if any(origin.values()) else {}
    names, hypervisors = files.known(given["path"])
    name = given["name"] or names.get(here.address, box.hostname)
    target = Target(name, here, via, hypervisors.get(via.address, "") if via else "", cuda)
    container = container_of(here.address, box, above) if above and above.kind else None
    return Looked(target, box, above, container)


def _adopted(looked: Looked, given: dict[str, Any], there: Box | None, console: Console) -> Adopted | None:
    if not looked.box.by_hand or given["adopt"] is False or (there and not given["adopt"]):
        return None
    if there:
        found = f"the inventory has {there.name} already, with the profile {there.settings.profile}"
        raise GpuboxError(
            found, "a box that it does not have, to adopt its server", "take its entry out, or --no-adopt"
        )
    server = several.chosen(looked.box.by_hand, given["server"])
    if given["adopt"] is None and _asks(given):
        question = f"Make the server that runs there (process {server.pid}) a profile?"
        if not click.confirm(question, default=True):
            return None
    adopted = adoption.adopt(server, given["stack"])
    if not given["as_json"]:
        hanging(console, [("adopted", note) for note in adopted.notes])
    return adopted


def _profile(listed: list[Proposal], adopted: Adopted | None, given: dict[str, Any], name: str) -> str | None:
    """What the box will serve; None: nothing fits."""
    if adopted:
        return str(given["profile_name"] or name)
    if given["profile"]:
        return str(given["profile"])
    fitting = [one.profile for one in listed if one.fits]
    if not fitting or not _asks(given):
        return fitting[0] if fitting else None
    names = click.Choice([one.profile for one in listed])
    return str(click.prompt("Profile, of those above", default=fitting[0], type=names, show_choices=False))


def _private(listed: list[Proposal], profile: str | None, adopted: Adopted | None, given: dict[str, Any]) -> bool:
    """Whether the data shall say that nobody else reaches the server: only a person knows."""
    if given["api_key_file"]:
        return False
    if adopted:
        is_open = adopted.flags.get("host") not in {None, "127.0.0.1", "localhost"} and not adopted.api_key
    else:
        is_open = any(one.open for one in listed if one.profile == profile)
    if given["private_network"] or not is_open or not _asks(given):
        return bool(given["private_network"] and is_open)
    return click.confirm("It will listen on all addresses without an API key. Is that network private?", default=False)


def _write(
    looked: Looked, wanted: list[files.Change], adopted: Adopted | None, path: Path, given: dict[str, Any]
) -> list[files.Change]:
    """Ask, and write all or nothing. What was written."""
    if given["dry"] or not wanted or not (given["yes"] or (_asks(given) and click.confirm("Write?", default=True))):
        return []
    target = looked.target
    if adopted and (adopted.api_key or adopted.hub_token):
        here, pid = target.login, adopted.pid
        wanted = [*secrets.fetch(here.address, here.connection, target.name, pid, adopted.hub_token), *wanted]
    before = {change.path: change.before for change in wanted}
    for change in wanted:
        files.write(change)
    problems = inventory.read(path).problems
    if problems:
        for change in wanted:
            _undo(change, before[change.path])
        raise GpuboxError("\n".join(problem.message for problem in problems), "an inventory without mistakes")
    return wanted


def _undo(change: files.Change, before: str) -> None:
    if before:
        files.write(files.Change(change.path, before, change.mode, change.secret))
    else:
        change.path.unlink(missing_ok=True)


def _asks(given: dict[str, Any]) -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and not given["yes"] and not given["as_json"]


def _print(found: list[Finding], listed: list[Proposal], console: Console) -> None:
    console.print("[bold]findings[/]" if found else "no findings", highlight=False)
    rules.report(found, console)
    console.print("[bold]profiles[/]", highlight=False)
    for one in listed:
        word = "[green]fits[/]" if one.fits else "[dim]no[/]  "
        console.print(f"  {word}  [bold]{escape(one.profile)}[/]", highlight=False)
        notes = (f"note: {note}" for note in one.notes)
        hanging(console, [("", line) for line in (one.summary, *one.reasons, *notes)], indent=8)


def _record(
    looked: Looked,
    found: list[Finding],
    listed: list[Proposal],
    profile: str | None,
    written: list[files.Change],
) -> dict[str, Any]:
    return {
        "host": looked.target.name,
        "card": dict(_labels(looked)),
        "findings": [finding.as_json() for finding in found],
        "proposals": [
            {"profile": one.profile, "fits": one.fits, "reasons": list(one.reasons), "notes": list(one.notes)}
            for one in listed
        ],
        "profile": profile,
        "files": [str(change.path) for change in written],
    }


def _labels(looked: Looked) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for label, text in card.lines(looked.box, looked.above, looked.choice):
        labels.setdefault(label, []).append(text)
    return labels


def _end(
    found: list[Finding], profile: str | None, unwritten: bool, path: Path, given: dict[str, Any], console: Console
) -> None:
    if profile is None:
        todo = "see the reasons above; --profile NAME overrules them"
        error = GpuboxError("no profile fits this machine", "one that does", todo)
        if given["as_json"]:  # the record says it, too
            _errors.after_result(error)
        raise error
    against = any(finding.severity == "error" for finding in found)
    if not unwritten and not given["as_json"] and given["profile"] not in {None, profile}:
        said = f"{path} has this box with the profile {profile}: change that there"
        console.print(said, highlight=False, soft_wrap=True)
    if unwritten:
        why = " (--dry)" if given["dry"] else "" if _asks(given) else " (without a terminal: --yes writes)"
        console.print(f"nothing was written{why}", highlight=False)
    else:
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        first = "mend the errors above, then " if against else ""
        console.print(f"next: {first}pyinfra -y {shown} deploy.py", highlight=False, soft_wrap=True)
    sys.exit(1 if against else 0)
