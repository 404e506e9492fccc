"""The stand-in nvidia-smi against what a real H200 printed, and against containers that may not open the nodes."""

import errno
from pathlib import Path
from typing import Any

import pytest

from gpubox.lab import hardware, nvidia_smi

RECORDED = Path(__file__).parent.parent / "cases" / "lab"
NO_SUCH_DEVICE = {"nvidiactl": errno.ENXIO, **{f"nvidia{n}": errno.ENXIO for n in range(8)}}
QUERY = (
    "index,uuid,name,compute_cap,memory.total,driver_version,power.limit,power.draw,pci.bus_id,"
    "pcie.link.gen.max,pcie.link.width.max"
)
NO_UNITS = (
    "index,uuid,name,compute_cap,memory.total,memory.used,utilization.gpu,temperature.gpu,driver_version,power.limit,"
    "power.draw,pci.bus_id,pcie.link.gen.max,pcie.link.gen.current,pcie.link.width.max,pcie.link.width.current"
)


def live(name: str, **changed: Any) -> dict[str, Any]:
    described = hardware.load(name)
    state = hardware.live_state(name, described, described.majors)
    for card in state["cards"]:
        card.update(changed)
    return state


@pytest.mark.parametrize(
    ("recording", "argv", "readings"),
    [
        ("nvidia-smi-L.txt", ["-L"], {}),
        ("nvidia-smi-query.csv", [f"--query-gpu={QUERY}", "--format=csv"], {"power.draw": 102.04}),
        ("nvidia-smi-query-nounits.csv", [f"--query-gpu={NO_UNITS}", "--format=csv,noheader,nounits"], {}),
        ("nvidia-smi-topo-m.txt", ["topo", "-m"], {}),
        ("nvidia-smi.txt", [], {"power.draw": 120.0, "temperature.gpu": 37}),
    ],
)
def test_prints_what_the_real_card_printed(recording: str, argv: list[str], readings: dict[str, Any]) -> None:
    text, code = nvidia_smi.answer(argv, live("h200-x1", **readings), NO_SUCH_DEVICE)
    expected = (RECORDED / recording).read_text()
    if not argv:  # the first line is the time of day
        text, expected = text.partition("\n")[2], expected.partition("\n")[2]
    assert (text, code) == (expected, 0)


@pytest.mark.parametrize(
    ("opened", "words", "code"),
    [
        ({}, "couldn't communicate with the NVIDIA driver", 9),
        ({"nvidiactl": errno.EPERM}, "Failed to initialize NVML: Unknown Error", 255),
        ({"nvidiactl": errno.EACCES}, "Insufficient Permissions", 4),
        ({"nvidiactl": errno.ENXIO}, "No devices were found", 6),
        ({"nvidiactl": errno.ENXIO, "nvidia0": errno.EPERM}, "No devices were found", 6),
    ],
)
def test_needs_the_nodes(opened: dict[str, int], words: str, code: int) -> None:
    text, got = nvidia_smi.answer(["-L"], live("rtx-pro-6000-x8"), opened)
    assert words in text
    assert got == code


def test_sees_only_the_cards_it_may_open_and_numbers_them_anew() -> None:
    opened = {"nvidiactl": errno.ENXIO, "nvidia2": errno.ENXIO, "nvidia5": 0, "nvidia6": errno.EPERM}
    text, _ = nvidia_smi.answer(
        ["--query-gpu=index,pci.bus_id", "--format=csv,noheader"], live("rtx-pro-6000-x8"), opened
    )
    assert text.splitlines() == ["0, 00000000:41:00.0", "1, 00000000:A1:00.0"]


@pytest.mark.parametrize(
    ("argv", "first_line", "code"),
    [
        (["--query-gpu=index", "--format=csv,noheader", "-i", "3"], "3", 0),
        (["--query-gpu=index,nonsense", "--format=csv"], 'Field "nonsense" is not a valid field to query.', 2),
        (["--query-gpu=memory.total", "--format=csv"], "memory.total [MiB]", 0),
        (["--query-compute-apps=pid,used_memory", "--format=csv"], "pid, used_memory", 0),
        (["topo", "-p2p", "r"], " \tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\t", 0),
        (["-q", "-x"], "STAND-IN: this nvidia-smi has no recording for -q -x", 2),
    ],
)
def test_arguments(argv: list[str], first_line: str, code: int) -> None:
    text, got = nvidia_smi.answer(argv, live("rtx-pro-6000-x8"), NO_SUCH_DEVICE)
    assert (text.splitlines()[0], got) == (first_line, code)


def test_topology_of_two_numa_nodes() -> None:
    text, _ = nvidia_smi.answer(["topo", "-m"], live("rtx-pro-6000-x8"), NO_SUCH_DEVICE)
    rows = [line.split("\t")[:9] for line in text.splitlines()[1:9]]
    assert rows[0] == ["GPU0", " X ", *["NODE"] * 3, *["SYS"] * 4]
    assert rows[7] == ["GPU7", *["SYS"] * 4, *["NODE"] * 3, " X "]


@pytest.mark.parametrize(
    ("argv", "may_write", "words", "code", "fields"),
    [
        (["-i", "0", "-pl", "450"], True, "was set to 450.00 W from 600.00 W.", 0, {"power.limit": 450.0}),
        (["-i", "0", "-pl", "601"], True, "should be between 300.00 W and 600.00 W", 2, None),
        (["-i", "0", "-pl", "450"], False, "does not have permission to change the power limit", 4, None),
        (["-i", "0", "-lgc", "90,150"], True, "(gpuClkMin 90, gpuClkMax 150)", 0, {"clocks.current.graphics": 150}),
        (["--id=9", "-pl", "450"], True, "No devices were found", 6, None),
    ],
)
def test_sets_limits(argv: list[str], may_write: bool, words: str, code: int, fields: dict[str, Any] | None) -> None:
    state = live("rtx-pro-6000-x8")
    changed = nvidia_smi.change(argv, state, NO_SUCH_DEVICE, may_write)
    assert changed is not None
    text, got, found = changed
    assert words in text
    assert got == code
    uuid = state["cards"][0]["uuid"]
    assert {**found.get(uuid, {}), **(fields or {})} == found.get(uuid, {})
    after = nvidia_smi.with_changes(state, found)
    query = ["--query-gpu=power.limit", "--format=csv,noheader,nounits"]
    limits = nvidia_smi.answer(query, after, NO_SUCH_DEVICE)[0].splitlines()
    assert limits == [f"{(fields or {}).get('power.limit', 600.0):.2f}", *["600.00"] * 7]


def test_a_card_without_a_power_limit_is_a_warning_and_exit_code_0() -> None:
    state = live("rtx-4090-x1-vm", **{"power.limit": "[N/A]"})
    changed = nvidia_smi.change(["-pl", "300"], state, NO_SUCH_DEVICE, may_write=True)
    assert changed is not None
    assert "is not supported" in changed[0]
    assert changed[1] == 0
    assert nvidia_smi.change(["-L"], state, NO_SUCH_DEVICE, may_write=True) is None


def test_the_power_readings_of_a_card_whose_limit_was_set() -> None:
    state = live("rtx-pro-6000-x8")
    changed = nvidia_smi.change(["-i", "0", "-pl", "450"], state, NO_SUCH_DEVICE, may_write=True)
    assert changed is not None
    after = nvidia_smi.with_changes(state, changed[2])
    text, code = nvidia_smi.answer(["-q", "-d", "POWER", "-i", "0"], after, NO_SUCH_DEVICE)
    assert code == 0
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[8] == "GPU 00000000:01:00.0"
    assert "Current Power Limit : 450.00 W" in lines
    assert "Default Power Limit : 600.00 W" in lines
    assert "Min Power Limit : 300.00 W" in lines
