"""A model of the hub: fetched while the old server serves, with a cut on the way; then served with the hub offline."""

import base64
from collections.abc import Iterator
from threading import Thread

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.service import UNIT
from tests.faults.client import Client
from tests.faults.workshop import Workshop
from tests.unit.test_weights import COMMIT, REPOSITORY, Hub

CONTROLLER = "10.87.0.1"
"""This machine, as the practice machine reaches it."""
CACHE = "/root/gpubox-test-hub"
MODEL = "/root/models/tiny-chat"


@pytest.fixture
def hub(on_box: Host) -> Iterator[Hub]:
    """A hub that holds the practice machine's tiny model."""
    names = on_box.check_output(f"ls {MODEL}").split()
    with Hub(CONTROLLER) as made:
        made.files = {name: base64.b64decode(on_box.check_output(f"base64 {MODEL}/{name}")) for name in names}
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()
    on_box.check_output(f"rm -rf {CACHE}")


@pytest.fixture
def workshop(tmp_path_factory: pytest.TempPathFactory, boxes: Inventory, gpu01: Box) -> Iterator[Workshop]:
    made = Workshop(tmp_path_factory.mktemp("checkout") / "gpubox", boxes.path, gpu01.name).prepare()
    made.deploy("tiny-cpu").ended_well()
    yield made
    made.deploy("tiny-cpu").ended_well()


@pytest.mark.pain("P71")
def test_a_model_of_the_hub(workshop: Workshop, hub: Hub, gpu01: Box, on_box: Host) -> None:
    hub.faults = {"model.safetensors": ["", "cut"], "config.json": ["429"]}
    profile = workshop.profile("from-hub", flags={"model-path": REPOSITORY}, model={"revision": COMMIT})
    settings = {"hub": {"endpoint": hub.url, "cache": CACHE}}
    with Client(gpu01) as client:
        workshop.deploy(profile, **settings).ended_well()
    assert not any(hub.faults.values())  # each was met, and survived
    assert (client.wrong, client.gaps, client.answers_now) == ([], 1, True)

    pid = on_box.check_output("systemctl show --value --property=MainPID %s", UNIT)
    environment = on_box.check_output("tr '\\0' '\\n' </proc/%s/environ", pid).splitlines()
    assert {"HF_HUB_OFFLINE=1", f"HF_HUB_CACHE={CACHE}"} <= set(environment)
    assert f"--revision {COMMIT}" in on_box.check_output("tr '\\0' ' ' </proc/%s/cmdline", pid)

    asked = hub.asked.total()
    assert workshop.deploy(profile, **settings).ended_well().changed == []
    assert hub.asked.total() == asked
