"""The API key: asked for by the server, and nowhere that others can see."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.service import UNIT
from gpubox.support import paths
from tests.deploy import converge
from tests.faults.test_releases import state
from tests.faults.workshop import Workshop

KEY = "k3y-of-this-test"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "api-key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, boxes: Inventory, gpu01: Box) -> Iterator[Workshop]:
    made = Workshop(tmp_path_factory.mktemp("checkout") / "gpubox", boxes.path, gpu01.name).prepare()
    made.deploy("tiny-cpu").ended_well()  # what the release with the key is compared with
    yield made
    made.deploy("tiny-cpu").ended_well()


def test_a_key_that_nobody_sees(workshop: Workshop, key_file: Path, gpu01: Box, on_box: Host) -> None:
    path = workshop.inventory("tiny-cpu", api_key_file=str(key_file))
    for words in (["--dry", "--diff"], ["-vvv"]):
        run = converge(path, *words, environment=workshop.environment()).ended_well()
        assert KEY not in run.output

    url = f"http://{gpu01.address}:{gpu01.profile.port}/v1/models"
    assert httpx.get(url, timeout=30, trust_env=False).status_code == 401
    with_key = {"Authorization": f"Bearer {KEY}"}
    assert httpx.get(url, headers=with_key, timeout=30, trust_env=False).status_code == 200

    everyones = "grep -rlI %s /proc/[0-9]*/cmdline /etc/systemd /run/systemd/system 2>/dev/null"
    assert on_box.run(everyones, KEY).stdout == ""
    held = on_box.check_output("grep -rl %s /var/lib/gpubox/releases", KEY).split()
    folder = f"/var/lib/gpubox/releases/{state(on_box)['current']}"
    assert sorted(held) == [f"{folder}/api-key", f"{folder}/config.yaml"]
    assert {on_box.file(path).mode for path in held} == {0o600}
    as_nobody = "setpriv --reuid=nobody --clear-groups"
    assert on_box.run(f"{as_nobody} cat {folder}/config.yaml").rc != 0
    assert on_box.run(f"{as_nobody} journalctl --unit={UNIT} --quiet").stdout == ""

    for words in (["releases", gpu01.name, "--json"], ["diff", gpu01.name, "current", "previous"]):
        command = [f"{sys.prefix}/bin/gpubox", *words, f"--inventory={path}"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=paths.root(), env=workshop.environment()
        )
        assert KEY not in done.stdout + done.stderr
    assert workshop.deploy("tiny-cpu", api_key_file=str(key_file)).ended_well().changed == []


def test_a_key_file_that_others_may_read_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    file = tmp_path / "open"
    file.write_text(KEY)
    file.chmod(0o644)
    run = workshop.deploy("tiny-cpu", api_key_file=str(file))
    assert run.code != 0
    assert "chmod 600" in run.output
    assert KEY not in run.output
