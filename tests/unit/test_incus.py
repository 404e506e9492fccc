"""Incus: from what `incus query` says to what its command line is told."""

import json
from typing import Any

import pytest

from gpubox.hypervisor.cards import Card
from gpubox.hypervisor.incus import changes, unprivileged
from gpubox.hypervisor.nodes import Node
from gpubox.support.errors import CannotTellError, GpuboxError

CARDS = [Card("0000:01:00.0", "nvidia", 0, 0), Card("0000:c1:00.0", "nvidia", 1, 1)]
CAP = Node("/dev/nvidia-caps/nvidia-cap1", 237, 1, 0o400)
SET = ["incus", "config"]
ADD_0 = [*SET, "device", "add", "c1", "gpu-0000-01-00-0", "gpu", "gputype=physical", "pci=0000:01:00.0", "mode=0666"]
ADD_1 = [*SET, "device", "add", "c1", "gpu-0000-c1-00-0", "gpu", "gputype=physical", "pci=0000:c1:00.0", "mode=0666"]
GPU_0 = {"type": "gpu", "pci": "01:00.0", "mode": "0666"}
GPU_1 = {"type": "gpu", "gputype": "physical", "pci": "0000:C1:00.0", "mode": "0666"}
EVERY = {"type": "gpu", "mode": "0666"}


def _instance(local: dict[str, Any], profile: dict[str, Any] | None = None, privileged: bool = True) -> str:
    config = {"security.privileged": "true"} if privileged else {}
    expanded = {**(profile or {}), **local}
    return json.dumps(
        {"name": "c1", "type": "container", "config": config, "devices": local, "expanded_devices": expanded}
    )


@pytest.mark.parametrize(
    ("instance", "commands"),
    [
        pytest.param(_instance({}), [ADD_0, ADD_1], id="fresh"),
        pytest.param(_instance({"a": GPU_0, "b": GPU_1}), [], id="nothing to do, whatever the names"),
        pytest.param(_instance({"a": GPU_0}), [ADD_1], id="one is missing"),
        pytest.param(_instance({}, {"gpus": EVERY}), [], id="a profile passes all"),
        pytest.param(
            _instance({"a": {**GPU_0, "mode": "0660"}, "b": GPU_1}),
            [[*SET, "device", "set", "c1", "a", "mode=0666"]],
            id="mode",
        ),
        pytest.param(
            _instance({"b": GPU_1}, {"p": {"type": "gpu", "pci": "01:00.0"}}),
            [[*SET, "device", "override", "c1", "p", "mode=0666"]],
            id="mode of a profile's device",
        ),
        pytest.param(
            _instance({"a": GPU_0, "b": GPU_1, "x": {"type": "gpu", "pci": "41:00.0"}}),
            [[*SET, "device", "remove", "c1", "x"]],
            id="one too many",
        ),
        pytest.param(
            _instance({"a": GPU_0, "b": GPU_1}, {"x": {"type": "gpu", "pci": "41:00.0"}}),
            [[*SET, "device", "add", "c1", "x", "none"]],
            id="one too many, from a profile",
        ),
        pytest.param(
            _instance({"a": GPU_0, "b": GPU_1, "m": {"type": "gpu", "gputype": "mig"}}), [], id="MIG left alone"
        ),
        pytest.param(
            _instance({"a": GPU_0, "b": GPU_1}, privileged=False),
            [[*SET, "set", "c1", "limits.kernel.memlock=unlimited"]],
            id="unprivileged may lock memory",
        ),
    ],
)
@pytest.mark.pain("P62")
def test_commands(instance: str, commands: list[list[str]]) -> None:
    assert changes("c1", instance, CARDS, [], every=True) == commands


@pytest.mark.pain("P12")
def test_caps_are_character_devices_of_their_own() -> None:
    present = {"a": GPU_0, "b": GPU_1, "old": {"type": "unix-char", "source": "/dev/nvidia-caps/nvidia-cap9"}}
    assert changes("c1", _instance(present), CARDS, [CAP], every=True) == [
        [*SET, "device", "remove", "c1", "old"],
        [
            *[*SET, "device", "add", "c1", "nvidia-cap1", "unix-char"],
            *[
                "source=/dev/nvidia-caps/nvidia-cap1",
                "path=/dev/nvidia-caps/nvidia-cap1",
                "mode=0666",
                "required=false",
            ],
        ],
    ]


@pytest.mark.parametrize("device", [EVERY, {"type": "gpu", "vendorid": "10de"}, {"type": "gpu", "id": "0"}])
def test_a_device_that_passes_every_card_is_refused_for_some(device: dict[str, str]) -> None:
    with pytest.raises(GpuboxError, match="device g of the container selects cards by"):
        changes("c1", _instance({"g": device}), CARDS[:1], [], every=False)


def test_not_a_container() -> None:
    with pytest.raises(GpuboxError, match="v1 is a virtual-machine"):
        changes("v1", json.dumps({"name": "v1", "type": "virtual-machine"}), CARDS, [], every=True)
    with pytest.raises(CannotTellError, match="cannot be read"):
        changes("c1", "Error: not found", CARDS, [], every=True)


def test_unprivileged_is_the_default() -> None:
    assert unprivileged(_instance({}, privileged=False))
    assert not unprivileged(_instance({}))


def test_caps_of_a_persons_own_stay_where_the_data_asks_for_none() -> None:
    present = {"a": GPU_0, "b": GPU_1, "mig": {"type": "unix-char", "source": "/dev/nvidia-caps/nvidia-cap9"}}
    assert changes("c1", _instance(present), CARDS, [], every=True) == []
