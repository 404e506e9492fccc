"""Run the scripts of gpubox.server on the host from inside an operation, with what they say shown as it comes."""

import atexit
import contextlib
import gc
from collections.abc import Iterator
from typing import Any, cast

import gevent
from paramiko import SSHException
from paramiko.channel import ChannelStdinFile
from pyinfra import state
from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.connectors.util import extract_control_arguments, make_unix_command_for_host

from gpubox.operations.progress import connector_arguments
from gpubox.remote import secrets
from gpubox.support.reading import json_object

_CLOSING_S = 5


def run(host: Host, command: StringCommand) -> tuple[bool, list[str], list[str]]:
    """Whether it ended well, its lines, and the lines of its stderr. Nothing is printed."""
    succeeded, output = host.run_shell_command(command, **connector_arguments(host))
    return succeeded, output.stdout_lines, secrets.lines(output.stderr_lines)


def channels(host: Host, command: StringCommand) -> tuple[Any, Any, Any] | None:
    """stdin, stdout and stderr of the command as it runs (paramiko's); None: this host is not reached by ssh.

    The command ends with the run, however that ends, if it ends when its stdin does.
    """
    client = getattr(host.connector, "client", None)
    if client is None:
        return None
    arguments = connector_arguments(host)
    extract_control_arguments(cast("ConnectorArguments", arguments))  # takes out what is not for the shell
    text = make_unix_command_for_host(state, host, command, **arguments).get_raw_value()
    opened: tuple[Any, Any, Any] = client.exec_command(text)
    return opened


def close_all() -> None:
    """Close what was opened on any host and is still open, ours and pyinfra's.

    paramiko closes such a file when it is freed, and sends a message for that. What is freed only while Python ends
    (a part of a cycle, a value of a module) finds no greenlets any more that could send, and a traceback stands under
    the summary of a good run: `RuntimeError: greenlet is being finalized`. A file that is closed already is closed
    once more when it is freed, and waits for a lock that a reader of the channel may hold: so that does nothing then.
    """
    # not isinstance: pyinfra's proxies would be asked what they are
    files = [one for one in gc.get_objects() if type(one) is ChannelStdinFile]
    with contextlib.suppress(gevent.Timeout), gevent.Timeout(_CLOSING_S):  # a host that is gone must not hold it
        for file in files:
            with contextlib.suppress(OSError, EOFError, SSHException):
                file.close()
    for file in files:
        vars(file)["close"] = _nothing


def _nothing() -> None:
    """What is left to do when a closed file is freed."""


def events(host: Host, command: StringCommand) -> Iterator[dict[str, Any]]:
    """The JSON lines that the command prints, as they come; without ssh, when it has ended."""
    opened = channels(host, command)
    lines = run(host, command)[1] if opened is None else opened[1]
    for line in lines:
        if line.startswith("{"):
            yield json_object(line, "what the script on the box said")


atexit.register(close_all)
