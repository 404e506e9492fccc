"""Keep one run's own connection alive over a restart of the box that it talks to."""

import time

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api.command import FunctionCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from gpubox.operations import Commands, operation


@operation()
def reconnect(limit_s: float = 180) -> Commands:
    """Connect again if the box was restarted since the run began; nothing while the connection lives.

    + limit_s: seconds to go on trying, with a progress line every five
    """
    if connected(host):
        return
    yield FunctionCommand(_connect_again, (limit_s,), {})


def connected(box: Host) -> bool:
    """Whether the ssh connection answers; a connector without one (local, into a container) is always connected.

    Asked with a round trip: a container that was killed sends no goodbye, and its old connection looks alive.
    """
    client = getattr(box.connector, "client", None)
    if client is None:
        return True
    transport = client.get_transport()
    if transport is None or not transport.is_active():
        return False
    try:
        transport.open_session(timeout=10).close()
    except (SSHException, EOFError, OSError):
        return False
    return True


def _connect_again(state: State, host: Host, limit_s: float) -> bool:
    began = time.monotonic()
    said = began
    while True:
        try:
            host.disconnect()
            host.connect(raise_exceptions=True, show_errors=False)
            logger.info(f"{host.print_prefix}connected again after {time.monotonic() - began:.1f} s")
            return True
        except ConnectError as error:
            now = time.monotonic()
            if now - began > limit_s:
                logger.error(f"{host.print_prefix}no connection within {limit_s:.0f} s of the restart: {error}")
                return False
            if now - said > 5:
                logger.info(f"{host.print_prefix}waiting for ssh, {now - began:.0f} s of {limit_s:.0f} s: {error}")
                said = now
            time.sleep(0.25)
