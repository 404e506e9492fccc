"""Look at a release before it is switched to, and switch to it: the only thing that stops a running server."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from pyinfra import host, logger
from pyinfra.api import Host, OperationError, QuoteString, State, StringCommand
from pyinfra.api.command import FunctionCommand

from gpubox.facts import handover, release
from gpubox.facts.handover import Running
from gpubox.facts.release import Releases
from gpubox.facts.service import ServiceState
from gpubox.operations import Commands, onbox, operation, watch
from gpubox.operations.progress import beating
from gpubox.operations.reload import AtRisk, warn
from gpubox.remote import secrets
from gpubox.remote.checks import CHILD_S, Arguments
from gpubox.remote.handover import END_S
from gpubox.server import in_effect
from gpubox.support import payload
from gpubox.support.reading import json_object


@operation()
def checked(
    digest: str, arguments: Arguments, look: Callable[[], ServiceState], replaced: Callable[[], Running]
) -> Commands:
    """
    Look at a release that is about to replace another, with the other still serving. A finding fails the host.

    + digest: the release
    + arguments: of gpubox.remote.checks
    + look: gives the ServiceState of the host
    + replaced: gives the server whose place this one takes
    """
    if look().releases.current == digest:
        host.noop(f"release {digest} is current")
        return
    yield FunctionCommand(_check, (replace(arguments, handed_over=replaced().pids),), {})


@operation()
def switched(
    unit: str,
    digest: str,
    venv_link: str,
    probe: dict[str, Any],
    look: Callable[[], ServiceState],
    replaced: Callable[[], Running],
    flags: list[str],
    at_risk: AtRisk = tuple,
) -> Commands:
    """
    Have the release current, enabled and running; the server is restarted only when its process is not of it.

    + unit: as `sglang.service`
    + digest: the release; its files lie on the host
    + venv_link: path that shall point at its venv
    + probe: what the client asks that measures the downtime (gpubox.remote.probe.Arguments)
    + look: gives the ServiceState of the host
    + replaced: gives the server of the same flags that somebody started by hand; it is ended once, right before
    + flags: the words after the launcher, by which that server is known
    + at_risk: gives docker containers that a reload of systemd may take the cards from
    """
    found = look()
    for line in in_effect.standing(found.releases.effective, unit):
        logger.warning(f"{host.print_prefix}{line}")
    if found.serves(digest):
        return
    warn(at_risk)
    arguments = {"unit": unit, "digest": digest, "venv_link": venv_link}
    before = found.releases.one(found.releases.current or "").get("probe")
    yield FunctionCommand(_switch, (arguments, [probe, *([before] if before else [])], replaced(), flags, found), {})


def act(host: Host, action: str, arguments: dict[str, Any]) -> Releases:
    """Do `action` of gpubox.remote.switch on the host. Error: OperationError with what it said."""
    succeeded, lines, errors = onbox.run(host, release.command(action, {**arguments, "by": release.somebody()}))
    if not succeeded:
        raise OperationError(f"{action}: {' '.join(errors) or 'no reason given'}")
    return release.parse(lines[-1])


def _check(state: State, host: Host, arguments: Arguments) -> bool:
    logger.info(f"{host.print_prefix}looking at the release while the old one serves ...")
    child = payload.after_python("checks_child")
    command = payload.shell("checks", given=asdict(replace(arguments, child=child)))
    with beating(host, "looking at the release", CHILD_S):
        _, lines, errors = onbox.run(host, StringCommand(command))
    if not lines:
        logger.error(f"{host.print_prefix}{' '.join(errors) or 'the release cannot be looked at: no reason given'}")
        return False
    said = json_object(lines[-1], "what the look at the release said")
    for finding in said["findings"]:
        todo = f"\n  to do:  {finding['todo']}" if finding["todo"] else ""
        logger.error(f"{host.print_prefix}{finding['check']}: {secrets.text(finding['found'])}{todo}")
    if said["findings"]:
        logger.error(f"{host.print_prefix}nothing was switched: what served before serves on")
        return False
    logger.info(f"{host.print_prefix}nothing speaks against it ({said['took_s']} s)")
    return True


def _switch(
    state: State,
    host: Host,
    arguments: dict[str, Any],
    asked: list[dict[str, Any]],
    replaced: Running,
    flags: list[str],
    found: ServiceState,
) -> bool:
    for line in _told(found, arguments["unit"]):
        logger.warning(f"{host.print_prefix}{line}")
    watch.begin(host, asked)
    if replaced.pids and not _end(host, replaced, flags, arguments["unit"]):
        return False
    logger.info(f"{host.print_prefix}switching to release {arguments['digest']}")
    try:
        with beating(host, "switching", seen=partial(_seen, host, arguments["unit"])):
            act(host, "switch", arguments)
    except OperationError as error:
        logger.error(f"{host.print_prefix}{error}")
        # Once it is current, `ready` says what became of it, and goes back.
        now = act(host, "state", arguments)
        return now.current == arguments["digest"] and not in_effect.wrong(now.effective, arguments["unit"])
    return True


def _seen(host: Host, unit: str) -> str:
    """What systemd does with the unit at the moment, and the limits that it has for that."""
    names = "ActiveState,SubState,MainPID,TimeoutStopUSec,TimeoutStartUSec"
    command = StringCommand(f"systemctl show --property={names}", QuoteString(unit))
    pairs = (line.partition("=") for line in onbox.run(host, command)[1])
    found = {name: value for name, _, value in pairs}
    state = f"{unit} is {found.get('ActiveState')} ({found.get('SubState')})"
    process = f", process {found['MainPID']}" if found.get("MainPID", "0") != "0" else ""
    return (
        f"{state}{process}; it may take {found.get('TimeoutStopUSec')} to end, {found.get('TimeoutStartUSec')} to start"
    )


def _told(found: ServiceState, unit: str) -> list[str]:
    """What was found that is put right by the switch, besides another release."""
    effective = found.releases.effective
    lines = in_effect.moved(effective, unit)
    if effective.process is not None:
        lines.append(f"the process of {unit} is not the one that its release asks for: {effective.process}")
    lines += [f"{path} was another's to write: it is closed" for path in found.releases.loose]
    return lines


def _end(host: Host, replaced: Running, flags: list[str], unit: str) -> bool:
    named = replaced.unit or f"process {replaced.pids[0]}"
    logger.info(f"{host.print_prefix}ending {named}: the same server, started by hand")
    with beating(host, f"ending {named}", END_S):
        ended, _, errors = onbox.run(host, handover.command("end", flags, unit))
    if not ended:
        logger.error(f"{host.print_prefix}{named}: {' '.join(errors) or 'it did not end'}")
    return ended
