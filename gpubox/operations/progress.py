"""Make a long command's progress visible: pyinfra prints the output of a command only with -v, and nothing of its own.

In an operation, instead of `yield StringCommand(...)`:

    yield shown(StringCommand("apt-get", "install", ...), "installing 12 packages")

The command's lines appear as they come, and while none come a line says every few seconds that it still runs.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
from pyinfra import logger
from pyinfra.api import Host, State, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS
from pyinfra.api.command import FunctionCommand

BEAT_S = 5.0


Judge = Callable[[bool, str], bool]
"""Whether the command succeeded, and what it printed -> whether the operation may go on."""


def shown(command: StringCommand, what: str, judge: Judge | None = None) -> FunctionCommand:
    """`command` as one that shows what it does.

    + command: runs as every command of the operation does (same user, environment, time limit); its output is printed,
      so it must hold no secret
    + what: said in the lines, as "installing 12 packages"
    + judge: has the last word on success, and may say more; None: the exit code has it
    """
    return FunctionCommand(_run, (command, what, judge), {})


def _run(state: State, host: Host, command: StringCommand, what: str, judge: Judge | None) -> bool:
    began = time.monotonic()
    logger.info(f"{host.print_prefix}{what} ...")
    with beating(host, what):
        # stderr is where programs tell progress; pyinfra would paint it red, as if it were an error.
        together = StringCommand("{", command, "; } 2>&1")
        succeeded, output = host.run_shell_command(together, print_output=True, **connector_arguments(host))
    if judge is not None:
        succeeded = judge(succeeded, output.output)
    took = time.monotonic() - began
    logger.info(f"{host.print_prefix}{what}: {'done' if succeeded else 'failed'} after {took:.1f} s")
    return bool(succeeded)


@contextmanager
def beating(
    host: Host, what: str, limit_s: float | None = None, seen: Callable[[], str] | None = None
) -> Iterator[None]:
    """While the block runs, a line every few seconds says that `what` still goes on.

    + limit_s: when it is given up
    + seen: gives what is to be seen of it on the host at the moment
    """
    beat = gevent.spawn(_beat, host, what, limit_s, seen)
    try:
        yield
    finally:
        beat.kill()


def _beat(host: Host, what: str, limit_s: float | None, seen: Callable[[], str] | None) -> None:
    began = time.monotonic()
    limit = "" if limit_s is None else f" of {limit_s:.0f} s"
    while True:
        gevent.sleep(BEAT_S)
        told = f": {seen()}" if seen is not None else ""
        logger.info(f"{host.print_prefix}{what}, {time.monotonic() - began:.0f}{limit or ' s'}{told}")


def connector_arguments(host: Host) -> dict[str, Any]:
    """How the running operation wants its commands run; pyinfra hands this to plain commands only."""
    arguments: dict[str, Any] = dict(host.current_op_global_arguments or {})
    return {key: value for key, value in arguments.items() if key in CONNECTOR_ARGUMENT_KEYS}
