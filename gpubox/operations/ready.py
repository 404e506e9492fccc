"""Wait until a release answers. One that never did gives way to the last one that did, and the run fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gevent
from pyinfra import host, logger
from pyinfra.api import Host, OperationError, State
from pyinfra.api.command import FunctionCommand

from gpubox.facts import handover
from gpubox.facts.ready import probe
from gpubox.facts.service import ServiceState
from gpubox.operations import Commands, onbox, operation, watch
from gpubox.operations.release import act
from gpubox.remote.probe import FIRST_PHASE
from gpubox.server import readiness

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
    if look().releases.superfluous:
        yield FunctionCommand(_tidy, (wanted, look), {})


def wait(host: Host, arguments: dict[str, Any]) -> dict[str, Any]:
    """The probe's last event: `ready`, `failed`, `cannot-tell`. Phases are shown as they come."""
    began, phase = time.monotonic(), [FIRST_PHASE]
    beat = gevent.spawn(_beat, host, phase, began)
    last: dict[str, Any] = {"event": "cannot-tell", "cause": "the probe said nothing"}
    try:
        for last in onbox.events(host, probe({**arguments, **readiness.about_log(), "thorough": True})):
            phase[0] = last.get("phase", phase[0])
            if last["event"] in {"phase", "ready"}:
                logger.info(f"{host.print_prefix}{phase[0] if last['event'] == 'phase' else 'ready'} {_after(last)}")
    finally:
        beat.kill()
    return last


def _conclude(state: State, host: Host, wanted: Wanted, look: Callable[[], ServiceState]) -> bool:
    before = look().releases
    known = before.is_verified(wanted.digest)
    event = wait(host, wanted.probe if known else {**wanted.probe, **_JUST_STARTED})
    try:
        if event["event"] == "ready":
            act(host, "verified", {**wanted.on_box, "digest": wanted.digest})
            act(host, "prune", wanted.on_box)
            _say(host, watch.end(host))
            return True
        logger.error(f"{host.print_prefix}release {wanted.digest} is not ready: {readiness.story(event)}")
        if event["event"] == "failed" and not known:
            _back(host, wanted)
    except OperationError as error:
        logger.error(f"{host.print_prefix}{error}")
    _say(host, watch.end(host))
    return False


def _tidy(state: State, host: Host, wanted: Wanted, look: Callable[[], ServiceState]) -> bool:
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
    event = wait(host, {**now.one(digest)["probe"], **_JUST_STARTED})
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


def _beat(host: Host, phase: list[str], began: float) -> None:
    while True:
        gevent.sleep(BEAT_S)
        logger.info(f"{host.print_prefix}waiting for the server: {phase[0]}, {time.monotonic() - began:.0f} s")
