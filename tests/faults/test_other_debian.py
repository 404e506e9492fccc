"""Boxes of other Debian releases: from bare to serving in two commands, a second run that changes nothing, drift.

Debian 11 stands for old Pythons (3.9 runs what is sent to a box), Debian 13 for new ones, for apt's sqv and for systemd
256 and later.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from gpubox import inventory
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.lab import lifecycle
from gpubox.lab.releases import DEFAULT, RELEASES
from tests.deploy import Run, converge
from tests.faults import onboarding
from tests.faults.test_drift import DAMAGES, ON_THE_HYPERVISOR, failed_acceptance_tests
from tests.ssh import spec


@pytest.fixture(scope="module", params=[release for release in RELEASES if release != DEFAULT])
def release(request: pytest.FixtureRequest) -> Iterator[str]:
    """gpu02 made of it, bare; the usual one again afterwards."""
    onboarding.a_box()
    lifecycle.reset(onboarding.NAME, request.param)
    yield request.param
    lifecycle.reset(onboarding.NAME, DEFAULT)


@pytest.fixture(scope="module")
def serving(release: str, tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    """The inventory that onboarding wrote, converged once."""
    folder = tmp_path_factory.mktemp(release)
    code, said = onboarding.onboard(folder, "--yes")
    assert (code, said["profile"]) == (0, "tiny-cpu"), said
    converge(folder / "box.py").ended_well()
    return inventory.load(folder / "box.py")


@pytest.fixture(scope="module")
def box(serving: Inventory) -> Box:
    return serving.box(onboarding.NAME)


@pytest.fixture(scope="module")
def deploy(serving: Inventory) -> Callable[[], Run]:
    return partial(converge, Path(serving.path))


def on(name: str, connection: Mapping[str, Any]) -> Host:
    return testinfra.get_host(spec(name, connection))


def test_it_is_what_was_asked_for(release: str, box: Box) -> None:
    found = on(box.name, box.connection).check_output(". /etc/os-release; echo $VERSION_CODENAME")
    assert found == release


def test_it_serves_and_a_second_run_changes_nothing(serving: Inventory, box: Box, deploy: Callable[[], Run]) -> None:
    assert failed_acceptance_tests(serving, box) == set()
    assert deploy().ended_well().changed == []


def test_damage_is_seen_and_repaired(serving: Inventory, box: Box, deploy: Callable[[], Run]) -> None:
    container = box.settings.container
    assert container is not None
    host, hypervisor = on(box.name, box.connection), on("pve01", serving.hypervisors["pve01"].connection)
    for command, _ in DAMAGES.values():
        host.run_expect([0], command)
    for command, _ in ON_THE_HYPERVISOR.values():
        hypervisor.run_expect([0], command, container.name)

    failed = failed_acceptance_tests(serving, box)
    unseen = [name for name, (_, test) in (DAMAGES | ON_THE_HYPERVISOR).items() if test not in failed]
    assert unseen == []

    deploy().ended_well()
    assert failed_acceptance_tests(serving, box) == set()
    assert deploy().ended_well().changed == []
