"""Read the cards through NVML while a row is measured (nvidia-ml-py, which SGLang brings)."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable
from typing import Any, Optional

INTERVAL_S = 0.5
Reading = dict[str, Optional[float]]


class Cards:
    """The cards of this box. Absent ones are "not measured" with the reason, never zeroes."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.driver: str | None = None
        self._handles: list[Any] = []
        self._readings: list[tuple[float, list[Reading]]] = []
        self._next = 0.0
        try:
            pynvml: Any = importlib.import_module("pynvml")  # the box may lack it

            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            self.driver = _text(pynvml.nvmlSystemGetDriverVersion())
        except Exception as error:  # whatever NVML says is the reason
            self.reason = f"not measured: NVML: {type(error).__name__}: {error}"
            return
        self._nvml = pynvml
        if not self._handles:
            self.reason = "not measured: NVML shows no card"

    def describe(self) -> list[dict[str, Any]]:
        """Name, memory, power limit and capability of each card; no serial numbers."""
        return [self._describe(i, handle) for i, handle in enumerate(self._handles)]

    def sample(self) -> None:
        """Takes a reading of every card, unless the last one is younger than INTERVAL_S."""
        now = time.time()
        if self._handles and now >= self._next:
            self._next = now + INTERVAL_S
            self._readings.append((now, [self._read(handle) for handle in self._handles]))

    def summary(self, since: float, until: float) -> list[dict[str, Any]] | None:
        """Means and maxima of each card between two times; None: not measured. Forgets all readings."""
        taken = [cards for at, cards in self._readings if since <= at <= until]
        self._readings = []
        if not taken:
            return None
        return [_summary(i, [cards[i] for cards in taken]) for i in range(len(self._handles))]

    def _describe(self, index: int, handle: Any) -> dict[str, Any]:
        nvml = self._nvml
        capability = _maybe(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
        return {
            "index": index,
            "name": _maybe(lambda: _text(nvml.nvmlDeviceGetName(handle))) or "unknown",
            "memory_mib": _maybe(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total) // 2**20),
            "power_limit_w": _maybe(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
            "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
        }

    def _read(self, handle: Any) -> Reading:
        nvml = self._nvml
        return {
            "power_w": _maybe(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            "utilisation_percent": _maybe(lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
            "memory_mib": _maybe(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20),
            "sm_clock_mhz": _maybe(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            "temperature_c": _maybe(lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
        }


def _maybe(read: Callable[[], Any]) -> Any:
    """One reading, or None where this card or driver does not offer it (MIG, vGPU, old boards)."""
    with contextlib.suppress(Exception):
        return read()
    return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _summary(index: int, readings: list[Reading]) -> dict[str, Any]:
    power, used = _known(readings, "power_w"), _known(readings, "utilisation_percent")
    memory, clock = _known(readings, "memory_mib"), _known(readings, "sm_clock_mhz")
    return {
        "index": index,
        "power_mean_w": _mean(power),
        "power_max_w": max(power, default=None),
        "utilisation_percent": _mean(used),
        "memory_max_mib": max(memory, default=None),
        "sm_clock_mhz": _mean(clock),
        "temperature_max_c": max(_known(readings, "temperature_c"), default=None),
        "samples": len(readings),
    }


def _known(readings: list[Reading], key: str) -> list[float]:
    return [value for reading in readings if (value := reading[key]) is not None]


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None
