"""Going on after the box was restarted: whether the old connection lives, and how a new one is made."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from paramiko import SSHException
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from gpubox.operations import connection


class Transport:
    """A paramiko transport: active or not, answering a new channel or not."""

    def __init__(self, active: bool = True, error: Exception | None = None) -> None:
        self.is_active, self.error = lambda: active, error

    def open_session(self, timeout: float) -> Any:
        if self.error:
            raise self.error
        return SimpleNamespace(close=lambda: None)


def _host(client: object) -> Host:
    return cast(Host, SimpleNamespace(connector=SimpleNamespace(client=client)))


@pytest.mark.parametrize(
    ("transport", "lives"),
    [
        (Transport(), True),
        (None, False),
        (Transport(active=False), False),
        (Transport(error=SSHException("Timeout opening channel.")), False),
        (Transport(error=EOFError()), False),
        (Transport(error=ConnectionResetError()), False),
    ],
)
@pytest.mark.pain("P80")
def test_a_connection_lives_when_it_answers(transport: Transport | None, lives: bool) -> None:
    assert connection.connected(_host(SimpleNamespace(get_transport=lambda: transport))) is lives


def test_a_connector_without_ssh_needs_no_reconnection() -> None:
    assert connection.connected(_host(None))


@pytest.mark.parametrize(("failures", "limit_s", "done"), [(0, 10, True), (7, 10, True), (99, 10, False)])
@pytest.mark.pain("P80")
def test_it_is_tried_until_it_answers_or_the_time_is_over(
    failures: int, limit_s: float, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    left = [failures]

    def connect(**_: object) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectError("refused")

    host = cast(Host, SimpleNamespace(disconnect=lambda: None, connect=connect, print_prefix=""))
    assert connection._connect_again(cast(State, None), host, limit_s) is done
