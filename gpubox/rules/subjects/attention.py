"""Attention: sparse attention (DSA, once NSA) on SM12x above all, where most releases have no kernel that works."""

from collections.abc import Iterator

from gpubox.rules.context import Context
from gpubox.rules.finding import CATALOGUE, Told
from gpubox.rules.registry import rule
from gpubox.support.versions import at_least

GLM = "GlmMoeDsaForCausalLM"
_OLD_BACKENDS = {"trtllm"}
_DECODE_BACKENDS = {"flashinfer_sparse_mla"}
_PREFILL_BACKENDS = {"flashinfer_sparse_mla", "triton_sparse_mla"}


@rule(
    "glm-dsa-sm120-release",
    "error",
    "GLM-5 on SM120 runs on an SGLang that has a sparse-attention kernel for it.",
    "https://github.com/sgl-project/sglang/issues/26087 (0.5.12: every backend dies before /health)",
    "https://github.com/sgl-project/sglang/pull/26928 (the kernel)",
    "read in the wheels: flashinfer_sparse_mla is a choice from 0.5.17 on; no report of 0.5.17 or 0.5.18 running",
    "recorded deployment (a source build of February 2026 did run with trtllm; its commit is unknown)",
    needs=CATALOGUE,
    refutable=True,
)
def release(c: Context) -> Iterator[Told]:
    """Found after a seven-minute load otherwise."""
    floor = c.matrix.glm_sm120_from
    if not c.gpu or c.model.architecture != GLM or not c.sm12 or at_least(c.release.sglang, floor):
        return
    choices = (flag.choices if (flag := c.spec("dsa-decode-backend")) else None) or []
    has = "has flashinfer_sparse_mla, but not known to run" if "flashinfer_sparse_mla" in choices else "has no kernel"
    found = (
        f"SGLang {c.release.sglang} {has} for GLM's sparse attention on compute capability {c.card.compute_capability}"
    )
    yield Told(found, f"SGLang {floor} or newer", "a stack with a newer SGLang, as sglang-0.5.23-cu130")


@rule(
    "dsa-backends-sm120",
    "error",
    "Sparse attention on SM120 has the two backends that give coherent output there.",
    "recorded deployment: any other NSA backend gave NaN in decode on SM120, trtllm did not",
    "https://github.com/sgl-project/sglang/issues/24633 (trtllm of newer releases: unsupported architecture)",
    "read in the wheels 0.5.17 to 0.5.23: picked by themselves for GLM with an FP8 KV cache; refused for other models",
    needs=CATALOGUE,
    refutable=True,
)
def backends(c: Context) -> Iterator[Told]:
    """Old releases: both trtllm, by hand. New ones: flashinfer_sparse_mla, or nothing given."""
    if not c.gpu or c.model.attention != "dsa" or not c.sm12:
        return
    new = at_least(c.release.sglang, c.matrix.glm_sm120_from)
    if new and c.model.architecture != GLM:
        found = f"no sparse-attention backend of SGLang {c.release.sglang} runs {c.model.architecture} on SM120"
        yield Told(found, "a GLM-5 model, or other cards", "choose another model for these cards")
        return
    for phase, fine in (("prefill", _PREFILL_BACKENDS), ("decode", _DECODE_BACKENDS)):
        given = c.text(f"dsa-{phase}-backend") or c.text(f"nsa-{phase}-backend")
        wanted = fine if new else _OLD_BACKENDS
        name = f"--{'dsa' if c.spec('dsa-' + phase + '-backend') else 'nsa'}-{phase}-backend"
        if given in wanted or (new and not given):
            continue
        yield Told(f"{name} {given or 'is left to SGLang'}", f"{name} {' or '.join(sorted(wanted))}", "set it")


@rule(
    "dsa-bf16-kv-sm120",
    "error",
    "GLM's sparse attention on SM120 has an FP8 KV cache.",
    "read in the wheels 0.5.17 to 0.5.23: with BF16 they pick flashmla_sparse and trtllm, which have no SM120 kernels",
    "https://github.com/sgl-project/sglang/pull/29580 (runs with fp8_e4m3)",
    needs=CATALOGUE,
    refutable=True,
)
def bf16_kv(c: Context) -> Iterator[Told]:
    """`auto` becomes fp8_e4m3 by itself. Older releases have no kernel for it at all."""
    kind = c.text("kv-cache-dtype")
    if kind not in {"bf16", "bfloat16"} or not c.gpu or c.model.attention != "dsa" or not c.sm12:
        return
    if not at_least(c.release.sglang, c.matrix.glm_sm120_from):
        return
    yield Told(
        f"--kv-cache-dtype {kind} with sparse attention on SM120", "fp8_e4m3", "set it to fp8_e4m3, or leave it out"
    )


@rule(
    "dsa-attention-backend",
    "error",
    "A model with sparse attention does not get another model's attention backend.",
    "recorded deployments: triton was right for Kimi K2 and wrong for GLM-5, which needs flashinfer",
    "read in the wheel 0.5.23: it picks dsa for these models by itself",
    needs=("model",),
    refutable=True,
)
def attention_backend(c: Context) -> Iterator[Told]:
    """flashinfer in old releases, dsa (once nsa) since."""
    given = c.text("attention-backend") if c.known_release else str(c.profile.flags.get("attention-backend") or "")
    if given in {"", "flashinfer", "dsa", "nsa"} or c.model.attention != "dsa":
        return
    yield Told(f"--attention-backend {given} for a model with sparse attention", "dsa, or nothing", "take it out")


@rule(
    "fp8-kv-on-int4",
    "warning",
    "Kimi K2's INT4 weights do not get an FP8 KV cache on SM120.",
    "https://github.com/local-inference-lab/rtx6kpro models/kimi-k25.md (16 tok/s, against 73-90 with BF16)",
    needs=CATALOGUE,
)
def fp8_kv_on_int4(c: Context) -> Iterator[Told]:
    """Slow, not wrong."""
    kind = c.text("kv-cache-dtype")
    if not kind.startswith("fp8") or not c.gpu or c.model.quantization != "compressed-tensors" or not c.sm12:
        return
    yield Told(f"--kv-cache-dtype {kind} with INT4 weights", "a BF16 KV cache", "leave --kv-cache-dtype out")
