"""May the practice machine run here? Decisions on injected findings."""

from dataclasses import replace
from typing import Any

import pytest

from gpubox.lab import preflight
from gpubox.support.errors import GpuboxError

GOOD = preflight.Machine(
    root=True,
    distribution="debian",
    architecture="x86_64",
    namespaces=frozenset({"mnt", "pid", "net", "uts", "ipc", "cgroup", "user"}),
    cgroups="v1",
    controllers=frozenset({"devices", "memory", "pids", "freezer", "cpu"}),
    free_gib=80.0,
    ours=False,
    links=frozenset({"lo", "eth0"}),
    ranges=("192.0.2.0/24", "127.0.0.0/8"),
    missing=(),
)


def test_a_good_machine_passes() -> None:
    preflight.check(GOOD)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"root": False}, "not root"),
        ({"distribution": "fedora"}, "distribution fedora"),
        ({"distribution": ""}, "distribution unknown"),
        ({"architecture": "aarch64"}, "aarch64"),
        ({"namespaces": frozenset({"mnt", "uts", "ipc", "net"})}, "without pid, cgroup namespaces"),
        ({"cgroups": "", "controllers": frozenset()}, "no cgroups mounted"),
        ({"controllers": frozenset({"memory", "pids", "freezer"})}, "no cgroup devices"),
        ({"free_gib": 11.9}, "11.9 GiB free"),
        ({"links": frozenset({"gpubox0"})}, "a link called gpubox0"),
        ({"ranges": ("10.87.0.0/16",)}, "addresses 10.87.0.0/16 in use"),
        ({"ranges": ("10.87.0.77/32",)}, "addresses 10.87.0.77/32 in use"),
    ],
)
def test_says_what_stands_in_the_way(change: dict[str, Any], words: str) -> None:
    with pytest.raises(GpuboxError, match="cannot run here") as caught:
        preflight.check(replace(GOOD, **change))
    assert words in caught.value.found
    assert caught.value.needed
    assert caught.value.todo


@pytest.mark.parametrize(
    "change",
    [
        {"ours": True, "links": frozenset({"gpubox0"}), "ranges": ("10.87.0.0/24",)},
        {"distribution": "linuxmint ubuntu debian"},
        {"cgroups": "v2", "controllers": frozenset()},
        {"ranges": ("10.0.0.0/8",)},
        {"missing": ("lxc",)},
    ],
)
def test_is_no_obstacle(change: dict[str, Any]) -> None:
    assert preflight.problems(replace(GOOD, **change)) == []


def test_every_reason_at_once() -> None:
    bad = replace(GOOD, free_gib=1.0, architecture="riscv64", distribution="alpine")
    assert [found for found, _, _ in preflight.problems(bad)][:2] == ["distribution alpine", "riscv64"]
    assert len(preflight.problems(bad)) == 3
