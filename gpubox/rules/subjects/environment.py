"""The service's environment: empty, reserved, unknown and outdated variables."""

import re
from collections.abc import Iterator

from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule
from gpubox.server import command
from gpubox.support.versions import at_least

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECULATIVE = {"EAGLE", "EAGLE3", "NEXTN"}
_OFF = {"0", "false", "False", "no"}


@rule(
    "environment-empty",
    "error",
    "No environment variable is empty.",
    "https://github.com/local-inference-lab/rtx6kpro (NCCL_GRAPH_FILE= breaks NCCL)",
)
def empty(c: Context) -> Iterator[Told]:
    """Set to nothing is not unset."""
    for name, value in c.environment.items():
        if not value.strip():
            yield Told(f"{name} is empty", "a value", f"take {name} out")


@rule(
    "environment-reserved",
    "error",
    "Variables that the stack sets are not set by the profile.",
    "https://github.com/flashinfer-ai/flashinfer/issues/2577 (CUDA_HOME decides which nvcc is used)",
    "https://github.com/NVIDIA/cudnn-frontend/issues/211 (two CUDA runtimes in one library path)",
)
def reserved(c: Context) -> Iterator[Told]:
    """CUDA_HOME and PATH come from the stack; a library path mixes CUDA versions, and other paths bring other code."""
    for name in c.environment:
        if name in command.RESERVED:
            yield Told(f"the profile sets {name}", "the stack's own", f"take {name} out; the stack has cuda_home")
        elif command.changes_code(name):
            yield Told(f"the profile sets {name}", "code and libraries of the venv", "take it out", "warning")
    for name in c.environment:
        if not _NAME.fullmatch(name):
            yield Told(f"{name!r} is no name of a variable", "letters, digits and _, no digit first", "correct it")


@rule(
    "environment-unknown",
    "warning",
    "Variables of SGLang are ones that the pinned release reads.",
    "read in the wheel of the release: every SGLANG_ name in its sources",
    needs=("release",),
)
def unknown(c: Context) -> Iterator[Told]:
    """A misspelt or removed one does nothing, in silence."""
    for name in c.environment:
        if name.startswith(("SGLANG_", "SGL_")) and name not in c.release.environment:
            yield Told(f"SGLang {c.release.sglang} does not read {name}", "a variable that it reads", "take it out")


@rule(
    "mtp-partner",
    "error",
    "Multi-token prediction has what belongs to it.",
    "https://github.com/local-inference-lab/rtx6kpro (without SGLANG_ENABLE_SPEC_V2 the model was loaded twice)",
    "read in the wheels: the variable is gone in newer releases",
    needs=("release", "model"),
    refutable=True,
)
def mtp(c: Context) -> Iterator[Told]:
    """The variable where the release knows it; the layer in the checkpoint, or a draft model."""
    algorithm = c.text("speculative-algorithm")
    if algorithm not in _SPECULATIVE:
        return
    name = "SGLANG_ENABLE_SPEC_V2"
    if name in c.release.environment and c.environment.get(name, "0") in {*_OFF, ""}:
        yield Told(
            f"--speculative-algorithm {algorithm} without {name}",
            f"{name}=1",
            "set it: memory for two models otherwise",
        )
    if not c.on("speculative-draft-model-path") and not c.model.mtp_in_checkpoint:
        found = f"--speculative-algorithm {algorithm}, and {c.profile.model.catalog} has no layer for it"
        yield Told(
            found, "--speculative-draft-model-path, or a checkpoint with the layer", "add it, or take the flag out"
        )


@rule(
    "deep-gemm-habit",
    "warning",
    "DeepGEMM is not switched off out of habit.",
    "read in the wheels: from 0.5.19 on the DeepGEMM that comes with SGLang has SM120 kernels",
    "https://github.com/local-inference-lab/rtx6kpro (older ones failed on SM120)",
    needs=("release", "card"),
)
def deep_gemm(c: Context) -> Iterator[Told]:
    """Right for old releases only."""
    name = "SGLANG_ENABLE_JIT_DEEPGEMM"
    if c.environment.get(name) in _OFF and c.sm12 and at_least(c.release.sglang, c.matrix.glm_sm120_from):
        yield Told(
            f"{name}={c.environment[name]} with SGLang {c.release.sglang}",
            "DeepGEMM on",
            "take it out, or measure both",
        )
