"""One run at a time on a host: two deploys at once would undo each other's work half-way."""

from typing import Any
from weakref import WeakKeyDictionary

from pyinfra import host, logger, state
from pyinfra.api import Host, State, operation
from pyinfra.api.command import FunctionCommand
from pyinfra.api.state import StateStage

from gpubox.operations import Commands

WAIT_S = 60
"""How long a run waits for another one, in seconds."""
_HOLD = (
    "flock --timeout {wait_s} /run/gpubox.lock sh -c '"
    'echo "${{SSH_CONNECTION%% *}} since $(date +%H:%M:%S)" >/run/gpubox.holder; echo held; exec cat >/dev/null\' '
    "|| cat /run/gpubox.holder"
)
_channels: WeakKeyDictionary[Host, tuple[Any, ...]] = WeakKeyDictionary()


@operation()
def exclusive() -> Commands:
    """
    Hold the host for this run, or fail and say who has it.

    The lock is a flock of a process that lives as long as its ssh channel: it cannot outlive this run, however it ends.
    """
    if state.current_stage != StateStage.Execute:
        return
    holder = _hold()
    if holder != "held":
        yield FunctionCommand(_busy, (holder,), {})


def _hold() -> str:
    """`held`, or who holds it."""
    client = getattr(host.connector, "client", None)
    if client is None:  # not over ssh: nothing that ends with the run can hold a lock there
        return "held"
    held = _channels.get(host.connector.host)
    if held is not None and not held[1].channel.closed:
        return "held"
    holder = _try(client, 0)
    if holder == "held":
        return holder
    logger.info(f"{host.print_prefix}another run is at work here (from {holder}): waiting up to {WAIT_S} s")
    return _try(client, WAIT_S)


def _try(client: Any, wait_s: int) -> str:
    channels = client.exec_command(_HOLD.format(wait_s=wait_s))
    _channels[host.connector.host] = channels
    return str(channels[1].readline()).strip()


def _busy(state: State, host: Host, holder: str) -> bool:
    logger.error(f"{host.print_prefix}another run is at work here (from {holder or 'unknown'}): wait for its end")
    return False
