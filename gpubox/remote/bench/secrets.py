"""Keep secrets out of records: of an environment only what bears on serving is kept, and keys are masked."""

from __future__ import annotations

import re
from typing import Any

MASK = "(secret)"
_RELEVANT = re.compile(
    r"^(CUDA|NCCL|NVIDIA|NVSHMEM|UCX|GLOO|SGLANG|SGL|TORCH|PYTORCH|TRITON|FLASHINFER|TVM|OMP|MKL|OPENBLAS|HF|TRANSFORMERS|"
    r"SAFETENSORS|TOKENIZERS|PYTHON|LD|VLLM|DG|DEEP|NUMA|MALLOC)[A-Z0-9_]*$"
)
_NOISE = {"NVIDIA_REQUIRE_CUDA", "NVIDIA_PRODUCT_NAME"}
"""Labels of container images, some of them pages long."""
_SECRET = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_SECRET_FLAG = re.compile(r"^-*(\w+[-_])*(api[-_]key|password|secret|auth[-_]token)$")
_SECRET_TEXT = re.compile(r"""((?:api_key|password)['"]?[=:]\s*)(?!None)('[^']*'|"[^"]*"|[^\s,)}]+)""")


def environment(variables: dict[str, str]) -> dict[str, str]:
    """The variables that bear on a model server, in order, keys and tokens masked."""
    kept = {name: value for name, value in sorted(variables.items()) if _RELEVANT.match(name) and name not in _NOISE}
    return {name: MASK if _SECRET.search(name) else value for name, value in kept.items()}


def argv(words: list[str]) -> list[str]:
    """The command line with the values of key flags masked, in both forms `--x value` and `--x=value`."""
    masked: list[str] = []
    for before, word in zip(["", *words], words):
        name, equals, _ = word.partition("=")
        if _SECRET_FLAG.match(before):
            masked.append(MASK)
        elif equals and _SECRET_FLAG.match(name):
            masked.append(f"{name}={MASK}")
        else:
            masked.append(word)
    return masked


def server_args(values: dict[str, Any]) -> dict[str, Any]:
    """What the server says of itself: plain values and lists only, keys masked. SGLang returns its API key there."""
    plain = {name: value for name, value in values.items() if _is_plain(value) and name != "launch_command"}
    return {name: MASK if value and _SECRET_FLAG.match(name) else value for name, value in plain.items()}


def lines(texts: list[str]) -> list[str]:
    """Log lines with keys masked: SGLang writes its API key into its `server_args=` line."""
    return [_SECRET_TEXT.sub(rf"\g<1>{MASK}", text)[:600] for text in texts]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 64 and all(isinstance(item, (str, int, float)) for item in value)
    return value is None or isinstance(value, (str, bool, int, float))
