"""Run the scripts of gpubox.server on the host from inside an operation, with what they say shown as it comes."""

import json
from collections.abc import Iterator
from typing import Any, cast

from pyinfra import state
from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.connectors.util import extract_control_arguments, make_unix_command_for_host

from gpubox.operations.progress import connector_arguments


def run(host: Host, command: StringCommand) -> tuple[bool, list[str], list[str]]:
    """Whether it ended well, its lines, and the lines of its stderr. Nothing is printed."""
    succeeded, output = host.run_shell_command(command, **connector_arguments(host))
    return succeeded, output.stdout_lines, output.stderr_lines


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


def events(host: Host, command: StringCommand) -> Iterator[dict[str, Any]]:
    """The JSON lines that the command prints, as they come; without ssh, when it has ended."""
    opened = channels(host, command)
    lines = run(host, command)[1] if opened is None else opened[1]
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)
