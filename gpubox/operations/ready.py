"""Wait until a release answers. One that never did gives way to the last one that did, and the run fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gevent
from pyinfra import host, logger, state
from pyinfra.api import Host, OperationError, State, StringCommand
from pyinfra.api.command import FunctionCommand
from pyinfra.api.state import StateStage

from gpubox.facts import handover, release
from gpubox.facts.ready import probe
from gpubox.facts.service import ServiceState
from gpubox.operations import Commands, onbox, operation, watch
from gpubox.operations.release import act
from gpubox.remote.probe import FIRST_PHASE
from gpubox.server import outside, readiness
from gpubox.server.outside import Outside

BEAT_S = 5.0
_JUST_STARTED = {"restarts": 0}
"""Of the probe: any restart by systemd is one too many."""


@dataclass(frozen=True)
class Wanted:
    """What must be ready."""

    unit: str
    """As `sglang.service`."""
    digest: str
    """The release."""
    venv_link: str
    """Path that points at the current venv."""
    probe: dict[str, Any]
    """What it is asked (gpubox.remote.probe.Arguments)."""
    outside: Callable[[Callable[[str], str]], Outside] | None = None
    """Asks it from this machine, with what prints the output of shell text on the host; None: nobody asks."""

    @property
    def on_box(self) -> dict[str, Any]:
        """Arguments of gpubox.remote.switch."""
        return {"unit": self.unit, "venv_link": self.venv_link}


@operation()
def ready(wanted: Wanted, look: Callable[[], ServiceState], answer: Callable[[], dict[str, Any]]) -> Commands:
    """
    Nothing to do when the release answers and has been found good, but to remove what runs that were refused have left;
    else wait for it, with progress, and find out.

    + wanted: the release and what it is asked
    + look: gives the ServiceState of the host
    + answer: gives the probe's last event after one look
    """
    if answer()["event"] != "ready" or not look().releases.is_verified(wanted.digest):
        yield FunctionCommand(_conclude, (wanted, look), {})
        return
    host.noop("the server answers")
    if state.current_stage == StateStage.Execute:
        _ask_outside(host, wanted)
    if look().releases.superfluous:
        yield FunctionCommand(_tidy, (wanted, look), {})


def wait(host: Host, arguments: dict[str, Any]) -> dict[str, Any]:
    """The probe's last event: `ready`, `failed`, `cannot-tell`. Phases are shown as they come."""
    began, said = time.monotonic(), [FIRST_PHASE]
    beat = gevent.spawn(_beat, host, said, began)
    last: dict[str, Any] = {"event": "cannot-tell", "cause": "the probe said nothing"}
    try:
        for last in onbox.events(host, probe({**arguments, **readiness.about_log(), "thorough": True})):
            if last["event"] == "waiting":
                said[0] = readiness.beat(last)
            elif last["event"] == "phase":
                said[0] = last["phase"]
            if last["event"] in {"phase", "ready"}:
                logger.info(f"{host.print_prefix}{last.get('phase', 'ready')} {_after(last)}")
    finally:
        beat.kill()
    return last


def _conclude(_: State, host: Host, wanted: Wanted, look: Callable[[], ServiceState]) -> bool:
    before = look().releases
    known = before.is_verified(wanted.digest)
    asked = {**wanted.probe, **release.main_process(wanted.digest)}
    event = wait(host, asked if known else {**asked, **_JUST_STARTED})
    try:
        if event["event"] == "ready":
            act(host, "verified", {**wanted.on_box, "digest": wanted.digest})
            act(host, "prune", wanted.on_box)
            _say(host, watch.end(host))
            _ask_outside(host, wanted)
            return True
        logger.error(f"{host.print_prefix}release {wanted.digest} is not ready: {readiness.story(event)}")
        if event["event"] == "failed" and not known:
            _back(host, wanted)
    except OperationError as error:
        logger.error(f"{host.print_prefix}{error}")
    _say(host, watch.end(host))
    return False


def _ask_outside(host: Host, wanted: Wanted) -> None:
    """A warning, no failure: the box is as asked, and what lies between may be meant to keep this machine out."""
    if wanted.outside is None:
        return

    def inside(text: str) -> str:
        return "\n".join(onbox.run(host, StringCommand(text))[1])

    found = wanted.outside(inside)
    if found.kind == "silent":
        logger.warning(f"{host.print_prefix}{outside.for_people(found)}")
    else:
        words = {"answers": "it answers at", "as asked": "not asked from here:", "unknown": "not asked from here:"}
        logger.info(f"{host.print_prefix}{words[found.kind]} {found.said}")


def _tidy(_: State, host: Host, wanted: Wanted, look: Callable[[], ServiceState]) -> bool:
    logger.info(f"{host.print_prefix}removing {', '.join(look().releases.superfluous)}: nothing goes back to them")
    act(host, "prune", wanted.on_box)
    return True


def _back(host: Host, wanted: Wanted) -> None:
    """To the last release that answered, which must answer again; without one, to what was started by hand."""
    try:
        now = act(host, "rollback", wanted.on_box)
    except OperationError as error:
        logger.error(f"{host.print_prefix}{error}")
        started, _, said = onbox.run(host, handover.command("again", [], wanted.unit, wanted.venv_link))
        again = "the server that was started by hand is started again: it has its loading time to go"
        logger.error(f"{host.print_prefix}{again if started else ' '.join(said)}")
        return
    digest = now.current or ""
    logger.error(f"{host.print_prefix}going back to release {digest}")
    event = wait(host, {**now.one(digest)["probe"], **release.main_process(digest), **_JUST_STARTED})
    if event["event"] == "ready":
        act(host, "verified", {**wanted.on_box, "digest": digest})
        act(host, "prune", wanted.on_box)
        logger.error(f"{host.print_prefix}release {digest} answers again, as before this run")
    else:
        logger.error(f"{host.print_prefix}release {digest} is not ready either: {readiness.story(event)}")


def _after(event: dict[str, Any]) -> str:
    return f"(after {event['at_s']} s)"


def _say(host: Host, text: str | None) -> None:
    if text:
        logger.info(f"{host.print_prefix}{text}")


def _beat(host: Host, said: list[str], began: float) -> None:
    """The last of what the probe said; through a connector without ssh that comes late, and only the time is new."""
    while True:
        gevent.sleep(BEAT_S)
        in_all = "" if " in all" in said[0] else f", {time.monotonic() - began:.0f} s"
        logger.info(f"{host.print_prefix}waiting for the server: {said[0]}{in_all}")
