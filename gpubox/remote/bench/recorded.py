"""What a record keeps of a server: of its environment only what bears on serving; nothing secret."""

from __future__ import annotations

import re
from typing import Any

from gpubox.remote import secrets

_RELEVANT = re.compile(
    r"^(CUDA|NCCL|NVIDIA|NVSHMEM|UCX|GLOO|SGLANG|SGL|TORCH|PYTORCH|TRITON|FLASHINFER|TVM|OMP|MKL|OPENBLAS|HF|"
    r"TRANSFORMERS|SAFETENSORS|TOKENIZERS|PYTHON|LD|VLLM|DG|DEEP|NUMA|MALLOC)[A-Z0-9_]*$"
)
_NOISE = {"NVIDIA_REQUIRE_CUDA", "NVIDIA_PRODUCT_NAME"}
"""Labels of container images, some of them pages long."""
_LONGEST_LINE = 600


def environment(variables: dict[str, str]) -> dict[str, str]:
    """The variables that bear on a model server, in order, secrets masked."""
    kept = {name: value for name, value in sorted(variables.items()) if _RELEVANT.match(name)}
    return secrets.environment({name: value for name, value in kept.items() if name not in _NOISE})


def server_args(values: dict[str, Any]) -> dict[str, Any]:
    """What the server says of itself: plain values and lists only, secrets masked (SGLang returns its API key)."""
    plain = {name: value for name, value in values.items() if _is_plain(value) and name != "launch_command"}
    return dict(secrets.data(plain))


def log(said: list[str]) -> list[str]:
    """Lines of the server's log without secrets: SGLang writes its API key into its `server_args=` line."""
    return [line[:_LONGEST_LINE] for line in secrets.lines(said)]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 64 and all(isinstance(item, (str, int, float)) for item in value)
    return value is None or isinstance(value, (str, bool, int, float))
