"""SGLang's platform plug-in for plain CPU torch: the practice machine's stand-in for a GPU platform.

SGLang finds it through the entry point group `sglang.srt.platforms` (its sglang/srt/platforms/interface.py says how).
"""

import importlib.util
import logging
from pathlib import Path

import torch  # type: ignore[import-not-found]  # there where this runs: the venv of the service

_log = logging.getLogger(__name__)
_OPERATORS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_kept: list[object] = []
"""Definitions of operators live as long as their library object."""


def activate() -> str:
    """Name of the platform's class, as SGLang wants it."""
    _log.warning(
        "gpubox-torch-cpu-platform is a STAND-IN for a GPU platform: figures from here say nothing about a GPU"
    )
    define_missing_operators()
    return "gpubox_torch_cpu_platform.platform.TorchCpuPlatform"


def define_missing_operators() -> None:
    """Give torchvision the operators that it lacks beside CPU torch; must run before torchvision is imported.

    PyPI's torchvision is a CUDA build: its library does not load here, and its import then fails with `operator
    torchvision::nms does not exist`. A torchvision whose library loads brings its own, and nothing is defined.
    """
    _load_torchvisions_own()
    missing = [name for name in _OPERATORS if not hasattr(torch.ops.torchvision, name)]
    if missing:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in missing:
            library.define(_OPERATORS[name])
        _kept.append(library)
        _log.info("defined for torchvision, without a kernel: %s", ", ".join(missing))


def _load_torchvisions_own() -> None:
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return
    for library in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(str(library))
        except OSError as error:  # a CUDA build, whose libraries are not here
            _log.debug("%s does not load: %s", library, error)
