"""How people name a machine and its ssh."""

from typing import Any

import pytest

from gpubox.onboard.login import login
from gpubox.support.errors import GpuboxError


@pytest.mark.parametrize(
    ("typed", "port", "address", "connection"),
    [
        ("192.0.2.11", None, "192.0.2.11", {"ssh_user": "root"}),
        ("gpu-a.example", 2222, "gpu-a.example", {"ssh_user": "root", "ssh_port": 2222}),
        ("ops@gpu-a:2201", None, "gpu-a", {"ssh_user": "ops", "_sudo": True, "ssh_port": 2201}),
        ("ops@gpu-a:2201", 2222, "gpu-a", {"ssh_user": "ops", "_sudo": True, "ssh_port": 2201}),
        ("2001:db8::11", None, "2001:db8::11", {"ssh_user": "root"}),
        ("[2001:db8::11]:2222", None, "2001:db8::11", {"ssh_user": "root", "ssh_port": 2222}),
    ],
)
def test_what_is_typed_is_taken_apart(typed: str, port: int | None, address: str, connection: dict[str, Any]) -> None:
    found = login(typed, "root", port, {})
    assert (found.address, found.connection) == (address, connection)


def test_another_user_becomes_root_by_sudo() -> None:
    found = login("192.0.2.11", "ops", None, {"ssh_key": "/k"})
    assert found.connection == {"ssh_user": "ops", "_sudo": True, "ssh_key": "/k"}


@pytest.mark.parametrize("typed", ["", "-oProxyCommand=x", "a b", "ssh://gpu-a", "gpu-a:99999", "gpu-a:ssh", "root@"])
def test_what_is_no_address_is_said(typed: str) -> None:
    with pytest.raises(GpuboxError, match="the address"):
        login(typed, "root", None, {})
