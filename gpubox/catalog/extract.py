"""A wheel of SGLang read into a catalogue entry. Run by `gpubox catalog extract`; the result is reviewed."""

import re
from ast import Assign, List, Name, Tuple, parse

from gpubox.catalog import gate
from gpubox.catalog.arguments import Arguments
from gpubox.catalog.release import AutotuneGate, Release
from gpubox.catalog.wheel import Wheel

_PINNED = (
    "torch",
    "torchaudio",
    "torchao",
    "transformers",
    "flashinfer-python",
    "flashinfer-cubin",
    "sgl-kernel",
    "sglang-kernel",
    "cuda-python",
    "quack-kernels",
    "humming-kernels",
)
_ENVIRONMENT = re.compile(r"\bSGL(?:ANG)?_[A-Z0-9_]*[A-Z0-9]\b")


def release(wheel: Wheel) -> Release:
    """What the wheel says. What it does not say without being run is named in `open`."""
    arguments = Arguments(wheel)
    pins = _pins(wheel)
    return Release(
        sglang=wheel.version,
        wheel=wheel.path.name,
        sha256=wheel.sha256,
        pins=pins,
        kernel_wheel="sglang-kernel" if "sglang-kernel" in pins else "sgl-kernel",
        autotune=_gate(wheel),
        architectures=_architectures(wheel),
        environment=_environment(wheel),
        flags={flag.names[0]: flag for flag in arguments.flags()},
        open=sorted(arguments.open),
    )


def _pins(wheel: Wheel) -> dict[str, str]:
    pins: dict[str, str] = {}
    for line in wheel.requirements:
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)", line)
        name = match.group(1).replace("_", "-").lower() if match else ""
        if match and name in _PINNED and ";" not in line:
            pins[name] = match.group(2).strip().strip("()")
    return dict(sorted(pins.items()))


def _gate(wheel: Wheel) -> AutotuneGate:
    for file in wheel.python_files("sglang/srt/model_executor/"):
        if (found := gate.in_source(wheel.text(file), file)) is not None:
            return found
    return AutotuneGate(state="absent")


def _architectures(wheel: Wheel) -> list[str]:
    found: set[str] = set()
    for file in wheel.python_files("sglang/srt/models/"):
        for node in parse(wheel.text(file)).body:
            if isinstance(node, Assign) and any(isinstance(t, Name) and t.id == "EntryClass" for t in node.targets):
                names = node.value.elts if isinstance(node.value, List | Tuple) else [node.value]
                found.update(name.id for name in names if isinstance(name, Name))
    return sorted(found)


def _environment(wheel: Wheel) -> list[str]:
    found: set[str] = set()
    for file in wheel.python_files("sglang/"):
        found.update(_ENVIRONMENT.findall(wheel.text(file)))
    return sorted(found)
