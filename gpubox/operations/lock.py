"""One run at a time on a host: two deploys at once would undo each other's work half-way."""

from typing import Any
from weakref import WeakKeyDictionary

from pyinfra import host, logger, state
from pyinfra.api import Host, State, StringCommand
from pyinfra.api.command import FunctionCommand
from pyinfra.api.state import StateStage

from gpubox.operations import Commands, onbox, operation

WAIT_S = 60
"""How long a run waits for another one, in seconds."""
_HOLD = (
    "flock --timeout {wait_s} --conflict-exit-code 75 /run/gpubox.lock sh -c '"
    'echo "${{SSH_CONNECTION%% *}} since $(date +%H:%M:%S)" >/run/gpubox.holder; echo held; exec cat >/dev/null\'; '
    "case $? in 0) ;; 75) cat /run/gpubox.holder ;; *) echo cannot-tell ;; esac"
)
CANNOT_TELL = "cannot-tell"
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
    held = _channels.get(host.connector.host)
    if held is not None and not held[1].channel.closed:
        return "held"
    holder = _try(0)
    if holder in {"held", CANNOT_TELL}:
        return holder
    logger.info(f"{host.print_prefix}another run is at work here (from {holder}): waiting up to {WAIT_S} s")
    return _try(WAIT_S)


def _try(wait_s: int) -> str:
    opened = onbox.channels(host.connector.host, StringCommand(_HOLD.format(wait_s=wait_s)))
    if opened is None:  # not over ssh: nothing that ends with the run can hold a lock there
        return "held"
    _channels[host.connector.host] = opened
    return str(opened[1].readline()).strip() or CANNOT_TELL


def _busy(state: State, host: Host, holder: str) -> bool:
    if holder == CANNOT_TELL:
        logger.error(f"{host.print_prefix}/run/gpubox.lock cannot be taken: run as root, or with _sudo")
    else:
        logger.error(f"{host.print_prefix}another run is at work here (from {holder}): wait for its end")
    return False
