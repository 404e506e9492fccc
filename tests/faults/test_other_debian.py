"""Boxes of other Debian releases than the usual one.

Debian 13 (Python 3.13, apt with sqv, systemd after 256): from bare to serving in two commands, a second run, drift.
Debian 11 (Python 3.9): SGLang has no wheels for its C library, which is said before anything large is installed; all
that does not need SGLang works there.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from gpubox.lab.releases import DEFAULT
from gpubox.support import paths
from tests.deploy import Run, converge
from tests.faults import onboarding
from tests.faults.test_drift import DAMAGES, ON_THE_HYPERVISOR, failed_acceptance_tests
from tests.ssh import spec

LIKE_GPU01 = """
import runpy
from gpubox.inventory import checked

_known = runpy.run_path({known!r}, run_name="gpubox_inventory")
hypervisors = _known["hypervisors"]
_container = {{"kind": "lxc", "name": {name!r}}}
_own = {{"ssh_hostname": {address!r}, "container": _container, **{more!r}}}
gpu_boxes = [({name!r}, {{**dict(_known["gpu_boxes"])["gpu01"], **_own}})]
checked(globals())
"""
REFUSED = "distribution-glibc"


@contextmanager
def made_of(release: str) -> Iterator[None]:
    """gpu02 made of it, bare; the usual one again afterwards."""
    onboarding.a_box()
    lifecycle.reset(onboarding.NAME, release)
    yield
    lifecycle.reset(onboarding.NAME, DEFAULT)


@pytest.fixture(scope="module")
def trixie() -> Iterator[None]:
    with made_of("trixie"):
        yield


@pytest.fixture(scope="module")
def bullseye() -> Iterator[None]:
    with made_of("bullseye"):
        yield


@pytest.fixture(scope="module")
def serving(trixie: None, tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    """The inventory that onboarding wrote, converged once."""
    folder = tmp_path_factory.mktemp("trixie")
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


def like_gpu01(boxes: Inventory, file: Path, **more: Any) -> Path:
    """An inventory of gpu02 alone, with gpu01's data."""
    name, address = onboarding.NAME, onboarding.ADDRESS
    file.write_text(LIKE_GPU01.format(known=str(Path(boxes.path).resolve()), name=name, address=address, more=more))
    return file


def test_a_system_without_wheels_of_sglang_is_refused_before_anything_large(
    bullseye: None, boxes: Inventory, tmp_path: Path
) -> None:
    run = converge(like_gpu01(boxes, tmp_path / "box.py"))
    assert run.code != 0
    assert "glibc 2.31" in run.output
    assert "a box of debian12" in run.output
    assert not [name for name in run.changed if "CUDA" in name or "Python env" in name]


def test_all_else_works_under_python_39(bullseye: None, boxes: Inventory, tmp_path: Path) -> None:
    why = {"rule": REFUSED, "reason": "test: as far as it goes"}
    file = like_gpu01(boxes, tmp_path / "box.py", overrides=[why])
    run = converge(file)
    assert run.code != 0
    assert "Wheels are available for `sglang`" in run.output
    box = inventory.load(file).box(onboarding.NAME)
    host = on(box.name, box.connection)
    assert host.check_output("python3 -c 'import sys; print(sys.version_info[:2])'") == "(3, 9)"
    assert host.run("/opt/gpubox/uv/bin/uv --version").rc == 0
    for version in box.settings.cuda.toolkits:
        assert f"release {version}" in host.check_output(f"/usr/local/cuda-{version}/bin/nvcc --version")
    files = [f"tests/acceptance/test_{about}.py" for about in ("base", "devices", "driver")]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *files, f"--inventory={file}", f"--hosts={box.name}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.root())
    assert done.returncode == 0, done.stdout
