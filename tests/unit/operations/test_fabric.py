"""The operation `fabric_manager`, and how the driver's set takes the fabric manager along."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.context import ctx_host

from gpubox.driver import packages as driver
from gpubox.driver.fabric import MODULES_FILE, UNIT, Fabric
from gpubox.facts.driver import DriverState
from gpubox.facts.packages import Package
from gpubox.operations import driver as driver_operations
from gpubox.operations.fabric import fabric_manager
from gpubox.support.owned_file import Entry

pytestmark = pytest.mark.pain("P96")

MODULE = "580.95.05"
OFFERS = {"nvidia-fabricmanager": ["580.105.08-1", f"{MODULE}-1"], "nvlsm": ["2025.03.1-1"]}
RUNS = Fabric("nvswitch", version=MODULE, loaded=True, enabled=True, active=True)
INSTALLED = {"nvidia-fabricmanager": Package(f"{MODULE}-1", "ii ")}
STATE = DriverState("ubuntu2404", False, MODULE, {}, INSTALLED, OFFERS, {}, fabric=RUNS)
BARE = replace(STATE, packages={}, fabric=Fabric("nvswitch"))


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A host whose apt offers OFFERS."""
    host = SimpleNamespace(name="gpu01", print_prefix="[gpu01] ", current_op_global_arguments={}, state=BARE)
    host.get_fact = lambda _fact, **_: host.state
    with ctx_host.use(host):
        yield host


def commands(state: DriverState, on: Any) -> list[str]:
    on.state = state
    operation: Any = fabric_manager
    found: list[str] = []
    for command in operation._inner(names=[], uris=[], look=lambda: state):
        if isinstance(command, StringCommand):
            found.append(command.get_raw_value())
        elif isinstance(command, FunctionCommand):
            found.append(" ".join(str(word) for word in command.args))
    return found


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(STATE, id="it runs"),
        pytest.param(replace(BARE, fabric=Fabric()), id="no switches"),
        pytest.param(replace(BARE, in_container=True), id="in a container it is the hypervisor's"),
        pytest.param(replace(BARE, module=None), id="no driver"),
    ],
)
def test_nothing_to_do(state: DriverState, on: Any) -> None:
    assert commands(state, on) == []


def test_it_is_installed_in_the_drivers_version_and_started(on: Any) -> None:
    found = commands(BARE, on)
    assert any("nvidia-fabricmanager=580.95.05-1" in line for line in found)
    assert not any("nvlsm" in line for line in found)
    assert found[-1] == f"systemctl enable --now {UNIT}"


def test_from_b200_on_with_its_subnet_manager_and_modules(on: Any) -> None:
    found = commands(replace(BARE, fabric=Fabric("nvlink5", frozenset({"mlx5_ib"}))), on)
    assert any("nvidia-fabricmanager=580.95.05-1 nvlsm" in line for line in found)
    assert any(line.endswith(MODULES_FILE) for line in found)
    assert "modprobe -a ib_umad" in found


def test_another_version_on_offer_is_refused_with_what_it_means(on: Any) -> None:
    found = commands(replace(BARE, offers={"nvidia-fabricmanager": ["580.105.08-1"]}), on)
    assert "error 802" in " ".join(found)
    assert not any("systemctl" in line for line in found)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (replace(RUNS, active=False), [f"systemctl start {UNIT}"]),
        (replace(RUNS, enabled=False, active=False), [f"systemctl enable --now {UNIT}"]),
    ],
)
def test_one_that_does_not_run_is_started(found: Fabric, expected: list[str], on: Any) -> None:
    assert commands(replace(STATE, fabric=found), on) == expected


def test_it_is_locked_pinned_and_held_with_the_driver() -> None:
    assert driver.is_locked("nvidia-fabricmanager-580", f"{MODULE}-1")
    held: Any = driver_operations.held
    (line,) = held._inner(look=lambda: STATE)
    assert line.get_raw_value() == "apt-mark hold nvidia-fabricmanager"
    pins = dict.fromkeys((driver.PINS, driver.UNATTENDED), Entry("absent"))
    moved = replace(STATE, packages={"nvidia-fabricmanager": Package("580.105.08-1", "ii ")}, files=pins)
    assert "nvidia-fabricmanager is 580.105.08-1" in driver_operations.wrong(moved, [])
    assert "nvidia-*" in driver.pins(MODULE, [], in_container=False)
    assert "^nvidia-" in driver.unattended()


@pytest.mark.parametrize(
    ("offers", "version", "found"),
    [
        (["580.95.05-1"], "580.95.05-1", "580.95.05-1"),
        (["580.126.20-0ubuntu3"], "580.126.20-0ubuntu0.24.04.2", "580.126.20-0ubuntu3"),
        (["580.105.08-1"], "580.95.05-1", None),
        ([], "580.95.05-1", None),
    ],
)
def test_another_packing_of_the_same_driver_goes_along(offers: list[str], version: str, found: str | None) -> None:
    assert driver.same(offers, version) == found
