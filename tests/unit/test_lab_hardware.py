"""Descriptions of hardware, and the kernel's texts made from them."""

from pathlib import Path

import pytest

from gpubox.lab import hardware
from gpubox.support.errors import GpuboxError

KERNEL = "Character devices:\n  1 mem\n 10 misc\n254 ndctl\n\nBlock devices:\n  7 loop\n253 zram\n"


@pytest.mark.parametrize("name", hardware.names())
def test_every_description_loads_and_has_distinct_cards(name: str) -> None:
    described = hardware.load(name)
    for key in ("uuid", "pci.bus_id"):
        assert len({card[key] for card in described.cards}) == len(described.cards)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(GpuboxError, match="gb10-x1, h200-x1, rtx-4090-x1-vm, rtx-pro-6000-x8"):
        hardware.load("rtx-9000")


def test_proc_devices_keeps_the_kernels_own_lines_in_order() -> None:
    text = hardware.proc_devices(KERNEL, {"nvidia-uvm": 511, "nvidia-caps": 237})
    assert text == (
        "Character devices:\n  1 mem\n 10 misc\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n237 nvidia-caps\n"
        "254 ndctl\n511 nvidia-uvm\n\nBlock devices:\n  7 loop\n253 zram\n"
    )


def test_a_real_driver_is_left_out() -> None:
    real = KERNEL.replace(" 10 misc\n", " 10 misc\n195 nvidia\n500 nvidia-uvm\n")
    assert hardware.without_nvidia(real) == KERNEL


def test_used_majors_are_the_character_ones() -> None:
    assert hardware.used_majors(KERNEL) == {1, 10, 254}


@pytest.mark.parametrize(
    ("wanted", "taken", "chosen"),
    [
        ({"a": 511, "b": 510}, set(), {"a": 511, "b": 510}),
        ({"a": 511, "b": 510}, {511}, {"a": 509, "b": 510}),
        ({"a": 511, "b": 510}, {511, 510}, {"a": 509, "b": 508}),
        ({"a": 384}, set(range(384, 512)), {"a": 254}),
    ],
)
def test_majors_are_free_and_the_wanted_ones_where_possible(
    wanted: dict[str, int], taken: set[int], chosen: dict[str, int]
) -> None:
    assert hardware.choose_majors(wanted, taken) == chosen


def test_nodes_of_a_loaded_driver() -> None:
    lines = hardware.node_list(2, {"nvidia-uvm": 511, "nvidia-caps": 237}).splitlines()
    assert "nvidia1 195 1 666" in lines
    assert "nvidiactl 195 255 666" in lines
    assert "nvidia-uvm-tools 511 1 666" in lines
    assert "nvidia-caps/nvidia-cap1 237 1 400" in lines


def test_install_twice_changes_nothing_and_reload_moves_every_major(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBOX_LAB_DIR", str(tmp_path))
    assert hardware.install("rtx-pro-6000-x8")
    assert not hardware.install("rtx-pro-6000-x8")
    before, inode = hardware.current()["majors"], (tmp_path / "hardware/proc-devices").stat().st_ino
    after = hardware.remajor()
    assert not set(before.values()) & set(after.values())
    assert not hardware.install("rtx-pro-6000-x8"), "a second `up` must keep the majors of the reload"
    assert (tmp_path / "hardware/proc-devices").stat().st_ino == inode, "it is bind-mounted into running boxes"
    hardware.install("h200-x1")
    assert [p.name for p in (tmp_path / "hardware/proc-driver/nvidia/gpus").iterdir()] == ["0000:00:06.0"]
