"""Experts: which kernels run them, what is tuned, what must be switched off."""

from collections.abc import Iterator

from gpubox.rules.context import Context
from gpubox.rules.finding import CATALOGUE, Severity, Told
from gpubox.rules.registry import rule
from gpubox.support.versions import at_least

CUTLASS = "flashinfer_cutlass"
AUTOTUNE_PATCH = "flashinfer-cutlass-autotune"  # as gpubox.server.patches names it; importing that costs half a second


@rule(
    "moe-trtllm",
    "error",
    "FlashInfer's trtllm experts run only where they have kernels.",
    "recorded deployment: flashinfer_trtllm is for SM100 only",
    "https://github.com/flashinfer-ai/flashinfer/issues/3263",
    needs=("release", "card"),
    refutable=True,
)
def trtllm(c: Context) -> Iterator[Told]:
    """Also the routed variant."""
    given = c.text("moe-runner-backend")
    if not given.startswith("flashinfer_trtllm") or not c.gpu or c.card.flashinfer_trtllm:
        return
    yield Told(f"--moe-runner-backend {given} on {c.card.name}", f"{CUTLASS} on this card", f"set it to {CUTLASS}")


@rule(
    "moe-backend-equal",
    "info",
    "Nobody hopes for speed from the other NVFP4 expert backend on SM120.",
    "recorded deployment: flashinfer_cutlass and flashinfer_cutedsl were equal within noise (195-225 and 206 tok/s)",
    needs=("release", "card"),
)
def equal(c: Context) -> Iterator[Told]:
    """The expert backend is not the bottleneck there."""
    if c.text("moe-runner-backend") == "flashinfer_cutedsl" and c.sm12:
        yield Told(
            "--moe-runner-backend flashinfer_cutedsl",
            f"nothing: it was as fast as {CUTLASS}",
            "measure before you keep it",
        )


@rule(
    "nvfp4-moe-auto",
    "warning",
    "NVFP4 experts on SM120 run on flashinfer_cutlass.",
    "read in the wheels: `auto` picks flashinfer_cutlass on SM120 from 0.5.13 on, not before",
    needs=CATALOGUE,
)
def nvfp4_auto(c: Context) -> Iterator[Told]:
    """By hand where `auto` does not."""
    if not c.gpu or c.text("moe-runner-backend") not in {"", "auto"} or c.model.quantization != "modelopt_fp4":
        return
    if c.model.experts and c.sm12 and not at_least(c.release.sglang, c.matrix.nvfp4_auto_from):
        found = f"SGLang {c.release.sglang} does not pick {CUTLASS} for NVFP4 experts on SM120 by itself"
        yield Told(found, f"--moe-runner-backend {CUTLASS}", "set it")


@rule(
    "shared-experts-fusion",
    "error",
    "Shared-experts fusion is off where the checkpoint cannot be fused.",
    "https://github.com/sgl-project/sglang/issues/29562 (size of tensor a (3072) must match tensor b (6144))",
    "read in the wheels: from 0.5.21 on it is off by itself where the checkpoint excludes it",
    needs=("release", "model"),
    refutable=True,
)
def fusion(c: Context) -> Iterator[Told]:
    """Loading fails late otherwise."""
    if not c.gpu or c.model.shared_experts_fusion:
        return
    flag = "disable-shared-experts-fusion"
    if c.on("enforce-shared-experts-fusion"):
        yield Told("--enforce-shared-experts-fusion is given", "no fusion for this checkpoint", "take it out")
    elif not c.on(flag) and not at_least(c.release.sglang, c.matrix.shared_experts_auto_from):
        # The recorded deployments loaded GLM-5 on 0.5.9 without the flag; the reports are of newer checkpoints.
        severity: Severity = "error" if at_least(c.release.sglang, c.matrix.glm_sm120_from) else "warning"
        yield Told(f"--{flag} is not given", f"--{flag} for {c.profile.model.catalog}", "add it", severity)


@rule(
    "moe-not-tuned",
    "info",
    "It is known that no tuned expert configuration exists for the card.",
    "recorded deployment: no tuning file for this card in FlashInfer, it falls back to defaults",
    "https://github.com/local-inference-lab/rtx6kpro (the same for SGLang's Triton experts)",
    needs=("card", "model"),
)
def not_tuned(c: Context) -> Iterator[Told]:
    """Shown, because it bounds what to expect."""
    if c.gpu and c.model.experts and c.sm12:
        yield Told(
            f"no tuned expert configuration ships for {c.card.name}", "", "expect defaults; autotune at start helps"
        )


@rule(
    "nvfp4-card",
    "error",
    "NVFP4 weights run on cards that have NVFP4.",
    "https://docs.nvidia.com/cuda/blackwell-tuning-guide/",
    needs=("card", "model"),
    refutable=True,
)
def nvfp4_card(c: Context) -> Iterator[Told]:
    """Blackwell and later."""
    if c.gpu and c.model.quantization == "modelopt_fp4" and not c.card.nvfp4:
        yield Told(f"NVFP4 weights on {c.card.name}", "a Blackwell card", "another checkpoint, or other cards")


@rule(
    "fp4-nan",
    "warning",
    "FP4 GEMMs on SM12x come from a FlashInfer whose kernels synchronise right.",
    "https://github.com/flashinfer-ai/flashinfer/issues/2708 (NaN at 64 concurrent requests)",
    "https://github.com/sgl-project/sglang/issues/20043",
    needs=CATALOGUE,
)
def fp4_nan(c: Context) -> Iterator[Told]:
    """One request at a time does not show it."""
    if (
        not c.gpu
        or c.model.quantization != "modelopt_fp4"
        or not c.sm12
        or c.text("fp4-gemm-backend") == "flashinfer_cudnn"
    ):
        return
    version = c.locked("flashinfer-python")
    if version is not None and not at_least(version, "0.6.7"):
        found = f"FlashInfer {version} compiles most FP4 GEMMs without the flag that orders dependent kernels"
        yield Told(found, "FlashInfer 0.6.7 or newer (SGLang 0.5.10)", "test answers at 64 concurrent requests")


@rule(
    "autotune-patch-needless",
    "error",
    "The autotune patch is applied only where SGLang still has the gate closed.",
    "read in the wheels: closed up to 0.5.12.post1, open from 0.5.13 on, moved in 0.5.14 and 0.5.15",
    needs=("release",),
)
def patch_needless(c: Context) -> Iterator[Told]:
    """Already upstream, or another shape: hands off."""
    if AUTOTUNE_PATCH in c.stack.patches and c.release.autotune.state != "gated":
        state = c.release.autotune.state
        found = f"stack {c.stack.name} patches the autotune of SGLang {c.release.sglang}, which is {state}"
        yield Told(found, "no patch: it is upstream since 0.5.13", f"take {AUTOTUNE_PATCH} out of the stack's patches")


@rule(
    "autotune-off",
    "warning",
    "A throughput profile on flashinfer_cutlass is autotuned.",
    "recorded deployments: 880 tok/s became 1,950 to 3,740 with autotune, no cap and no graphs",
    "read in the wheels: commented out up to 0.5.12.post1",
    needs=("release",),
)
def autotune_off(c: Context) -> Iterator[Told]:
    """Closed in the source, or switched off by a flag."""
    if not c.gpu or c.profile.purpose != "throughput" or c.text("moe-runner-backend") not in {CUTLASS, ""}:
        return
    if (
        c.release.autotune.state == "gated"
        and c.text("moe-runner-backend") == CUTLASS
        and AUTOTUNE_PATCH not in c.stack.patches
    ):
        found = f"SGLang {c.release.sglang} does not autotune {CUTLASS}"
        yield Told(found, f"SGLang 0.5.13 or newer, or the patch {AUTOTUNE_PATCH}", "a newer stack")
    if c.on("disable-flashinfer-autotune"):
        yield Told("--disable-flashinfer-autotune in a throughput profile", "autotune", "take it out, or measure both")


@rule(
    "autotune-desync",
    "warning",
    "Autotune over several cards agrees on one choice.",
    "https://github.com/flashinfer-ai/flashinfer/issues/3622",
    "read in the wheels: timings are reduced over ranks from 0.5.15 on",
    needs=("release",),
)
def desync(c: Context) -> Iterator[Told]:
    """Each rank chooses for itself in the patched releases."""
    if AUTOTUNE_PATCH in c.stack.patches and c.release.autotune.state == "gated" and c.size("tp-size") > 1:
        found = f"patched SGLang {c.release.sglang} autotunes each card by itself"
        yield Told(found, "one choice for all ranks", "watch for hangs; SGLang 0.5.15 and newer reduce the timings")
