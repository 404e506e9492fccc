"""Kernels that are compiled at run time: one folder for each venv, emptied when driver or toolkit became another.

FlashInfer, Triton, torch and the others keep what they compile under names that do not say all that went into it. After
an upgrade they load what was made for something else (https://github.com/flashinfer-ai/flashinfer/issues/4062). A venv
is named by its content, so another release of any of them has another folder; what is not of the venv is compared when
the service starts, which is also after a hypervisor's new driver, when no deploy ran. No change: all is kept.
"""

from gpubox.server.release import ROOT

_PLACES = {
    "CUTE_DSL_CACHE_DIR": "cute",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "SGLANG_DG_CACHE_DIR": "deep_gemm",
    "SGLANG_JIT_CACHE_DIR": "sglang",
    "TILELANG_CACHE_DIR": "tilelang",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "TRITON_CACHE_DIR": "triton",
    "TVM_FFI_CACHE_DIR": "tvm_ffi",
}
"""Variables as read in the wheels of sglang 0.5.9 to 0.5.23, flashinfer 0.7.2, torch 2.14, triton, apache-tvm-ffi."""
VARIABLES = frozenset(_PLACES)
_DRIVER = "/proc/driver/nvidia/version"
_CUBINS = "/root/.cache/flashinfer/cubins"
"""Where FlashInfer keeps what it downloads instead of compiling, checked by digests: not lost with the rest."""
_EMPTY_UNLESS_SAME = """set -e; umask 077; mkdir -p "$1"
now=$(cat "$2" 2>/dev/null || true; "$CUDA_HOME/bin/nvcc" --version 2>/dev/null || true)
if [ "$now" != "$(cat "$1/made-with" 2>/dev/null || true)" ]; then
  rm -rf "$1"; mkdir "$1"; printf "%s\\n" "$now" >"$1/made-with"
fi
own="$1/flashinfer/.cache/flashinfer"; mkdir -p "$3" "$own"; ln -sfn "$3" "$own"/cubins"""


def folder(venv: str) -> str:
    """Where the kernels lie that a venv's programs compile, on the box.

    + venv: its digest
    """
    return f"{ROOT}/jit/{venv}"


def environment(venv: str) -> dict[str, str]:
    """Variables that send them there. No part of a profile's environment, which comes after and counts more."""
    return {name: f"{folder(venv)}/{place}" for name, place in _PLACES.items()}


def ready(venv: str, driver: str = _DRIVER, cubins: str = _CUBINS) -> list[str]:
    """The command before the server's start: the folder is there, and empty unless all in it was made with the driver
    and the toolkit of now. It needs CUDA_HOME, and fails when it cannot empty the folder.

    + driver: file with the kernel module's version
    + cubins: folder of what FlashInfer downloads
    """
    return ["/bin/sh", "-c", _EMPTY_UNLESS_SAME, "sh", folder(venv), driver, cubins]
