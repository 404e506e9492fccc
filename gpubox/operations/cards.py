"""Refuse what needs a card where none answers."""

from collections.abc import Callable

from pyinfra import logger
from pyinfra.api import Host, State
from pyinfra.api.command import FunctionCommand

from gpubox.operations import Commands, operation


@operation()
def driver_answers(stack: str, look: Callable[[], str]) -> Commands:
    """
    Fail, before gigabytes are downloaded, where a stack for GPUs is to be installed and the driver does not answer.

    + stack: its name
    + look: gives why the driver does not answer; empty: it does
    """
    reason = look()
    if reason:
        yield FunctionCommand(_refuse, (stack, reason), {})


def _refuse(state: State, host: Host, stack: str, reason: str) -> bool:
    if "not permitted" in reason:
        logger.error(
            f"{host.print_prefix}/dev/nvidiactl: {reason}\n"
            "    found:  the node is there, and the device cgroup of this container refuses it; the driver is not at "
            "fault\n"
            "    to do:  start the container anew on its host; if it worked before, a systemctl daemon-reload there "
            "took its cards (NVIDIA/nvidia-docker#1730)"
        )
        return False
    logger.error(
        f"{host.print_prefix}/dev/nvidiactl: {reason}\n"
        f"    needed: a driver that answers, because the stack {stack} is for GPUs\n"
        "    to do:  load the driver on this machine or its hypervisor; or choose a profile with a CPU stack"
    )
    return False
