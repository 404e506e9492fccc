"""Facts that judgements are made of, each with its source: SGLang releases, cards, models, what fits what.

Releases are JSON files made by `gpubox catalog extract` from the real wheels; the rest is kept by hand in YAML.
"""

from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, Field

from gpubox.support.data import Model, validated
from gpubox.support.versions import at_least

_FOLDER = Path(__file__).parent


class Card(Model):
    """A kind of card."""

    name: str
    """As nvidia-smi prints it."""
    aliases: list[str] = Field(default_factory=list)
    """Editions that differ in nothing that matters here but their name."""
    compute_capability: str
    """As `12.0`; SM120 in compilers' words."""
    memory_mib: int
    """As nvidia-smi shows it."""
    power_limit_w: int
    """Watts, the highest default limit."""
    power_range_w: list[int] | None = Field(default=None, min_length=2, max_length=2)
    """Smallest and largest limit in watts that the card takes, as it said so itself; None: not known, or not the same
    for all makers' cards."""
    nvfp4: bool
    """Has tensor cores for NVFP4."""
    all_reduce_fusion: bool
    """FlashInfer has fused all-reduce kernels for it."""
    flashinfer_trtllm: bool
    """FlashInfer's trtllm kernels run on it."""
    driver: str
    """Smallest driver that knows it."""
    open_module: bool
    """Only NVIDIA's open kernel module drives it."""
    nvlink: bool = False
    """NVLink joins all cards of a machine, as SGLang's custom all-reduce asks for more than two; no bridge of pairs."""
    sources: list[str] = Field(min_length=1)

    @property
    def is_sm12(self) -> bool:
        """SM120 or SM121."""
        return self.compute_capability.startswith("12.")


class ModelFacts(Model):
    """A model."""

    hub: list[str]
    """Its names on the model hub."""
    architecture: str
    """As its config.json says."""
    attention: str
    """gqa, mla, or dsa: sparse attention with an indexer (SGLang called it NSA)."""
    layers: int
    heads: int
    """Attention heads: tensor parallelism divides them."""
    kv_heads: int
    hidden: int
    experts: int
    """Routed experts; 0: a dense model."""
    quantization: str | None
    """As SGLang's --quantization names it; None: none."""
    weights_gib: float
    """GiB that all cards together hold."""
    kv_bytes: dict[str, int]
    """dtype -> bytes of KV cache for one token."""
    kv_replicated: bool
    """Every card holds all of the KV cache (MLA and DSA), instead of its share of the heads."""
    transformers: str
    """Smallest version that knows it."""
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    shared_experts_fusion: bool = True
    """False: loading fails when SGLang fuses the shared expert."""
    mtp_in_checkpoint: bool
    """Has the layer for multi-token prediction."""
    decode_graph_max_bs: dict[int, int] = Field(default_factory=dict)
    """GB of a card -> largest batch whose CUDA graphs fit beside the weights."""
    sources: list[str] = Field(min_length=1)


class Compiler(Model):
    """What nvcc a FlashInfer asks for."""

    flashinfer: str
    sm120: str
    sm121: str


class WheelLibrary(Model):
    """What C library the wheels of SGLang ask for, from a release on."""

    sglang: str
    glibc: str


class Matrix(Model):
    """What fits what."""

    drivers: dict[str, str]
    drivers_of_major: dict[str, str]
    first_toolkit: dict[str, str]
    glibc: dict[str, str]
    wheel_glibc: list[WheelLibrary]
    cuda13_only_from: str
    nvcc_sm12x: list[Compiler]
    nvcc_knows_sm12x: str
    nvfp4_auto_from: str
    glm_sm120_from: str
    shared_experts_auto_from: str
    sources: dict[str, str]

    def glibc_for(self, sglang: str) -> str | None:
        """The C library that a release's wheels ask for; None: they run on any."""
        asked = [row.glibc for row in self.wheel_glibc if at_least(sglang, row.sglang)]
        return asked[-1] if asked else None

    def nvcc_for(self, compute_capability: str, flashinfer: str | None) -> str | None:
        """Smallest nvcc for a card with a FlashInfer; None: nothing is asked for."""
        if not compute_capability.startswith("12."):
            return None
        asked = [row for row in self.nvcc_sm12x if flashinfer is not None and at_least(flashinfer, row.flashinfer)]
        if not asked:
            return self.nvcc_knows_sm12x
        return asked[-1].sm120 if compute_capability == "12.0" else asked[-1].sm121


M = TypeVar("M", bound=BaseModel)


@cache
def cards() -> dict[str, Card]:
    """Key -> card."""
    return _table(Card, "cards.yaml")


@cache
def models() -> dict[str, ModelFacts]:
    """Key -> model."""
    return _table(ModelFacts, "models.yaml")


@cache
def matrix() -> Matrix:
    """What fits what."""
    return validated(Matrix, _read("matrix.yaml"), "matrix.yaml")


def _table(model: type[M], name: str) -> dict[str, M]:
    return {key: validated(model, value, f"{name}: {key}") for key, value in _read(name).items()}


def _read(name: str) -> dict[str, Any]:
    """With libyaml where PyYAML was built with it: ten times faster, and `gpubox check` has 1.5 seconds in all."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load((_FOLDER / name).read_text(), loader))  # noqa: S506 - a SafeLoader either way
