"""Proxmox VE's configuration of a container: tests/cases/proxmox/NAME/{ask.yaml,in.conf,out.conf}."""

from pathlib import Path

import pytest
import yaml

from gpubox.hypervisor.nodes import Node, needed
from gpubox.hypervisor.proxmox_config import own_lines, unprivileged, with_devices
from gpubox.support.errors import GpuboxError

CASES = sorted((Path(__file__).parents[1] / "cases/proxmox").iterdir())
NODES = needed("195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n", [0, 1])


def _case(folder: Path) -> tuple[str, str, tuple[int, ...]]:
    ask = yaml.safe_load((folder / "ask.yaml").read_text())
    before, after = ((folder / name).read_bytes().decode() for name in ("in.conf", "out.conf"))
    return before, after, tuple(ask["version"])


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
@pytest.mark.pain("P04")
def test_entries_are_as_wanted(folder: Path) -> None:
    before, after, version = _case(folder)
    assert with_devices(before, NODES, version) == after


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
@pytest.mark.pain("P04")
def test_second_run_changes_nothing(folder: Path) -> None:
    _, after, version = _case(folder)
    assert with_devices(after, NODES, version) == after


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_a_file_without_its_last_newline_gains_only_that(folder: Path) -> None:
    before, after, version = _case(folder)
    assert with_devices(before.rstrip("\n"), NODES, version).rstrip("\n") == after.rstrip("\n")


def test_what_proxmox_makes_of_our_file_is_left_alone() -> None:
    """It sorts the keys at each change of its own."""
    ours = with_devices("hostname: a\narch: amd64\n", NODES, (5, 2, 0))
    sorted_by_proxmox = "".join(sorted(ours.splitlines(keepends=True)))
    assert with_devices(sorted_by_proxmox, NODES, (5, 2, 0)) == sorted_by_proxmox


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lock: backup\n", "(?s)locked .backup..*pct unlock ID$"),
        ("lock: create\n", "(?s)locked .create..*half made: pct unlock ID && pct destroy ID$"),
        ("template: 1\n", "template"),
        ("".join(f"dev{n}: /dev/sd{n}\n" for n in range(256)), "all 256 dev entries"),
    ],
)
def test_what_cannot_be_done_is_said(text: str, message: str) -> None:
    with pytest.raises(GpuboxError, match=message):
        with_devices(text, NODES, (5, 2, 0))


def test_a_lock_of_a_snapshot_is_not_the_containers() -> None:
    assert "dev0" in with_devices("arch: amd64\n\n[snap]\nlock: x\n", NODES, (5, 2, 0))


@pytest.mark.pain("P03")
def test_a_new_major_changes_nothing_where_entries_are_by_path() -> None:
    text = with_devices("arch: amd64\n", NODES, (5, 2, 0))
    moved = [Node(node.path, 409, node.minor) for node in NODES]
    assert with_devices(text, moved, (5, 2, 0)) == text


def test_own_lines_and_privilege() -> None:
    text = (
        "unprivileged: 1\nlxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind\n\n[s]\nlxc.mount.entry: /dev/nvidia1 x\n"
    )
    assert own_lines(text) == ["lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind"]
    assert unprivileged(text)
    assert not unprivileged("arch: amd64\n\n[s]\nunprivileged: 1\n")
