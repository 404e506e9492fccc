"""Power limits and clocks: what cards say now against the data, and the script that sets them,
run for real."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpubox.hypervisor import limits
from gpubox.hypervisor.limits import LimitedCard
from gpubox.lab import hardware
from gpubox.settings.host import BoxSettings, CardLimit, HypervisorSettings
from gpubox.support import paths
from gpubox.support.data import validated
from gpubox.support.errors import GpuboxError

pytestmark = pytest.mark.pain("P94")

# a card as its fields are printed, a laptop's, a lost one, and a warning between them
PRINTED = """\
GPU-6b1f0000-5a20-4c00-9e00-000000000000, 00000000:01:00.0, NVIDIA RTX PRO 6000 Blackwell Server Edition, 600.00, 600.00, 300.00, 600.00, 180, 405
GPU-6b1f0001-5a20-4c00-9e00-000000000001, 00000000:C1:00.0, NVIDIA GeForce RTX 4080 Laptop GPU, [N/A], [N/A], [N/A], 175.00, 210, 405
Warning: persistence mode is disabled on device 00000000:01:00.0.
GPU-6b1f0002-5a20-4c00-9e00-000000000002, 00000000:21:00.0, NVIDIA H200, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]
"""  # noqa: E501 - as nvidia-smi prints it
CARDS = limits.parse(PRINTED)
FIRST = CARDS[0]


def of(data: dict[str, dict[str, Any]]) -> dict[str, CardLimit]:
    return {name: CardLimit.model_validate(limit) for name, limit in data.items()}


def test_what_cards_say_of_themselves() -> None:
    assert [card.pci for card in CARDS] == ["0000:01:00.0", "0000:c1:00.0", "0000:21:00.0"]
    assert (FIRST.power_w, FIRST.lowest_w, FIRST.highest_w, FIRST.graphics_mhz) == (600, 300, 600, 180)
    assert (CARDS[1].power_w, CARDS[1].highest_w) == (None, 175)
    assert CARDS[2] == LimitedCard(CARDS[2].uuid, "0000:21:00.0", "NVIDIA H200", *[None] * 6)
    assert limits.parse("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n") == []


@pytest.mark.parametrize(
    ("data", "power", "graphics"),
    [
        ({}, None, None),
        ({"all": {"power_w": 450}}, 450, None),
        ({"all": {"power_w": 450}, "01:00.0": {"power_w": 400}}, 400, None),
        ({"all": {"power_w": 450}, "00000000:01:00.0": {"graphics_clocks_mhz": [210, 1800]}}, 450, [210, 1800]),
        ({"gpu-6B1F0000-5a20-4c00-9e00-000000000000": {"power_w": 350}}, 350, None),
        ({"02:00.0": {"power_w": 350}}, None, None),
    ],
)
def test_a_cards_own_entry_goes_before_that_of_all(
    data: dict[str, Any], power: int | None, graphics: list[int] | None
) -> None:
    found = limits.limit_of(of(data), FIRST.uuid, FIRST.pci)
    assert (found and found.power_w, found and found.graphics_clocks_mhz) == (power, graphics)


@pytest.mark.parametrize(
    ("cards", "data", "says"),
    [
        ([FIRST], {"all": {"power_w": 600}}, ""),
        ([FIRST], {"all": {"power_w": 601}}, "power_w is 601, it allows 300.0 to 600.0"),
        ([FIRST], {"all": {"power_w": 200}}, "power_w is 200"),
        ([FIRST], {"02:00.0": {"power_w": 450}}, "there is no card 02:00.0 (cards here: card GPU-6b1f0000"),
        (CARDS[1:2], {"all": {"power_w": 100}}, "has no power limit that can be set"),
        (CARDS[2:], {"all": {"memory_clocks_mhz": [405, 800]}}, "says no memory clock"),
        (CARDS[1:], {"all": {"graphics_clocks_mhz": [210, 800]}}, "0000:21:00.0) says no graphics clock"),
    ],
)
def test_what_a_card_cannot_be_asked_for(cards: list[LimitedCard], data: dict[str, Any], says: str) -> None:
    assert says in "; ".join(limits.refused(of(data), cards))
    assert bool(says) == bool(limits.refused(of(data), cards))


@pytest.mark.parametrize(
    ("now", "data", "says"),
    [
        ({"power_w": 450.0}, {"power_w": 450}, []),
        ({"power_w": 450.004}, {"power_w": 450}, []),
        ({"power_w": 600.0}, {"power_w": 450}, ["power limit 600 W, the data says 450 W"]),
        ({"power_w": None}, {"power_w": 450}, ["power limit of unknown W"]),
        ({"graphics_mhz": 180.0}, {"graphics_clocks_mhz": [210, 1800]}, []),
        ({"graphics_mhz": 1815.0}, {"graphics_clocks_mhz": [210, 1800]}, []),
        ({"graphics_mhz": 2430.0}, {"graphics_clocks_mhz": [210, 1800]}, ["graphics clock 2430 MHz"]),
        ({"memory_mhz": 12481.0}, {"memory_clocks_mhz": [405, 9501]}, ["memory clock 12481 MHz"]),
    ],
)
def test_drift(now: dict[str, Any], data: dict[str, Any], says: list[str]) -> None:
    found = limits.drift(of({"all": data}), [replace(FIRST, **now)])
    assert len(found) == len(says)
    assert all(words in line for words, line in zip(says, found, strict=True))


@pytest.mark.parametrize(
    ("key", "limit", "says"),
    [
        ("0", {"power_w": 450}, "an index moves when a card is lost"),
        ("all", {}, "names no limit"),
        ("all", {"power_w": 0}, "greater than or equal to 1"),
        ("all", {"power_w": "450"}, "valid integer"),
        ("all", {"graphics_clocks_mhz": [1800, 210]}, "the lowest comes first"),
        ("all", {"powr_w": 450}, "did you mean power_w"),
    ],
)
def test_wrong_data_is_an_error_that_says_what_is_accepted(key: str, limit: dict[str, Any], says: str) -> None:
    for model, more in ((HypervisorSettings, {}), (BoxSettings, {"profile": "tiny-cpu"})):
        with pytest.raises(GpuboxError, match=says):
            validated(model, {**more, "card_limits": {key: limit}}, "host")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the practice machine's nvidia-smi over eight cards, and the files that it
    keeps."""
    described = hardware.load("rtx-pro-6000-x8")
    state = hardware.live_state("rtx-pro-6000-x8", described, described.majors)
    (tmp_path / "live.json").write_text(json.dumps(state))
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f"#!{sys.executable}\n"
        "import errno, sys\n"
        f"sys.path.insert(0, {str(paths.root())!r})\n"
        "from gpubox.lab import nvidia_smi\n"
        f"nvidia_smi.LIVE, nvidia_smi.SET = {str(tmp_path / 'live.json')!r}, {str(tmp_path / 'set.json')!r}\n"
        "nvidia_smi._try_open = lambda node: errno.ENXIO\n"
        "sys.exit(nvidia_smi._main())\n"
    )
    program.chmod(0o755)
    return tmp_path


def run(machine: Path, data: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    script = machine / "script"
    script.write_text(limits.texts(of(data))[limits.SCRIPT])
    path = f"{machine}:{os.environ['PATH']}"
    return subprocess.run(["sh", str(script)], env={**os.environ, "PATH": path}, capture_output=True, text=True)


def watts(machine: Path) -> list[str]:
    words = [str(machine / "nvidia-smi"), "--query-gpu=power.limit", "--format=csv,noheader,nounits"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def test_the_script_sets_each_card_by_uuid_or_address(machine: Path) -> None:
    data = {
        "all": {"power_w": 450, "graphics_clocks_mhz": [90, 120]},
        "21:00.0": {"power_w": 400},
        "GPU-6b1f0007-5a20-4c00-9e00-000000000007": {"power_w": 350, "memory_clocks_mhz": [100, 400]},
    }
    done = run(machine, data)
    assert (done.returncode, done.stderr) == (0, "")
    assert watts(machine) == ["450.00", "400.00", *["450.00"] * 5, "350.00"]
    clocks = json.loads((machine / "set.json").read_text())
    assert {card["-lgc"] for card in clocks.values()} == {"90,120"}
    assert [uuid for uuid, card in clocks.items() if "-lmc" in card] == ["GPU-6b1f0007-5a20-4c00-9e00-000000000007"]


def test_only_the_named_cards_are_touched_and_one_that_refuses_does_not_keep_the_others(machine: Path) -> None:
    done = run(machine, {"01:00.0": {"power_w": 100}, "41:00.0": {"power_w": 500}})
    assert done.returncode == 1
    assert "Provided power limit 100.00 W is not a valid power limit" in done.stderr
    assert watts(machine) == ["600.00", "600.00", "500.00", *["600.00"] * 5]


def test_a_warning_with_exit_code_0_is_a_failure(machine: Path) -> None:
    state = json.loads((machine / "live.json").read_text())
    state["cards"][3]["power.limit"] = "[N/A]"
    (machine / "live.json").write_text(json.dumps(state))
    done = run(machine, {"all": {"power_w": 450}})
    assert done.returncode == 1
    assert "Changing power management limit is not supported" in done.stderr
    assert watts(machine)[4] == "450.00"


def test_no_driver_is_a_failure_that_systemd_tries_again(machine: Path) -> None:
    state = json.loads((machine / "live.json").read_text())
    (machine / "live.json").write_text(json.dumps({**state, "cards": []}))
    assert run(machine, {"all": {"power_w": 450}}).returncode == 1
    assert "Restart=on-failure" in limits.texts(of({"all": {"power_w": 450}}))[limits.UNIT_FILE]


def test_the_unit_follows_the_persistence_daemon_and_each_load_of_the_driver() -> None:
    texts = limits.texts(of({"all": {"power_w": 450}}))
    lines = texts[limits.UNIT_FILE].splitlines()
    assert next(line for line in lines if line.startswith("After=")).split("=")[1].split()[0] == (
        "nvidia-persistenced.service"
    )
    assert "PartOf=nvidia-persistenced.service" in lines
    assert "WantedBy=multi-user.target nvidia-persistenced.service" in lines
    assert f"--no-block restart {limits.UNIT}" in texts[limits.UDEV_RULES]
    assert set(texts) == set(limits.FILES)
