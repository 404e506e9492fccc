"""Wait until the model server gives a real answer; fail with the cause and the log's last lines when it will not."""

import json
import time
from collections.abc import Callable
from typing import Any

import gevent
from pyinfra import host, logger
from pyinfra.api import Host, State, operation
from pyinfra.api.command import FunctionCommand
from pyinfra.connectors.util import make_unix_command_for_host

from gpubox.facts.ready import probe
from gpubox.operations import Commands

BEAT_S = 5.0


@operation()
def ready(arguments: dict[str, Any], look: Callable[[], dict[str, Any]]) -> Commands:
    """
    Nothing to do when the server answers already; else wait for it, with progress.

    + arguments: of the probe (gpubox.server.probe.Arguments)
    + look: gives the probe's last event after one look
    """
    event = look()
    if event["event"] == "ready":
        host.noop("the server answers")
        return
    yield FunctionCommand(_wait, (arguments,), {})


def _wait(state: State, host: Host, arguments: dict[str, Any]) -> bool:
    began, phase = time.monotonic(), ["start"]
    beat = gevent.spawn(_beat, host, phase, began)
    last: dict[str, Any] = {"event": "cannot-tell", "cause": "the probe said nothing"}
    try:
        command = make_unix_command_for_host(state, host, probe(arguments)).get_raw_value()
        _, lines, _ = host.connector.client.exec_command(command)  # type: ignore[attr-defined]  # paramiko's, of ssh
        for line in lines:
            last = json.loads(line)
            phase[0] = last.get("phase", phase[0])
            logger.info(f"{host.print_prefix}{_said(last)}")
    finally:
        beat.kill()
    return bool(last["event"] == "ready")


def _said(event: dict[str, Any]) -> str:
    if event["event"] == "phase":
        return f"{event['phase']} (after {event['at_s']} s)"
    if event["event"] == "ready":
        return f"ready: a real answer after {event['at_s']} s"
    log = "".join(f"\n    | {line}" for line in event.get("log", []))
    return f"{event['event']}: {event.get('cause', '')}{log}"


def _beat(host: Host, phase: list[str], began: float) -> None:
    while True:
        gevent.sleep(BEAT_S)
        logger.info(f"{host.print_prefix}waiting for the server: {phase[0]}, {time.monotonic() - began:.0f} s")
