"""The cards through NVML: absent ones, and readings that a card does not offer, are not measured, never zero."""

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gpubox.remote.bench.nvml import Cards


def nvml(**changes: Any) -> SimpleNamespace:
    def unsupported(*_: object) -> None:
        raise RuntimeError("Not Supported")

    base = {
        "NVML_CLOCK_SM": 1,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda i: i,
        "nvmlSystemGetDriverVersion": lambda: b"580.159.04",
        "nvmlDeviceGetName": lambda i: f"card {i}".encode(),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=143771 * 2**20, used=2**30),
        "nvmlDeviceGetEnforcedPowerLimit": lambda _: 600_000,
        "nvmlDeviceGetCudaComputeCapability": lambda _: (12, 0),
        "nvmlDeviceGetPowerUsage": lambda i: 250_000 + 10_000 * i,
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=90),
        "nvmlDeviceGetClockInfo": unsupported,
        "nvmlDeviceGetTemperature": lambda *_: 55,
    }
    return SimpleNamespace(**{**base, **changes})


def test_no_library_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    cards = Cards()
    cards.sample()
    assert str(cards.reason).startswith("not measured: NVML: ModuleNotFoundError")
    assert (cards.describe(), cards.summary(0, time.time())) == ([], None)


def test_no_card_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetCount=lambda: 0))
    assert Cards().reason == "not measured: NVML shows no card"


def test_cards_are_described_without_serial_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    cards = Cards()
    assert (cards.reason, cards.driver) == (None, "580.159.04")
    assert cards.describe()[1] == {
        "index": 1,
        "name": "card 1",
        "memory_mib": 143771,
        "power_limit_w": 600.0,
        "compute_capability": "12.0",
    }


def test_a_row_gets_the_readings_of_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    cards = Cards()
    began = time.time()
    cards.sample()
    cards.sample()  # too soon after the first: no reading
    found = cards.summary(began, time.time())
    assert found is not None
    assert [(card["power_mean_w"], card["samples"], card["sm_clock_mhz"]) for card in found] == [
        (250.0, 1, None),
        (260.0, 1, None),
    ]
    assert cards.summary(began, time.time()) is None
