"""Packages that are compiled on a box: how many jobs, what must fit, and the key under which the wheel is kept."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from gpubox.support import paths

GIB_A_JOB = 4
"""GiB that one nvcc of flash-attn takes (https://github.com/Dao-AILab/flash-attention/issues/945)."""


def max_jobs(cores: int, memory_bytes: int) -> int:
    """Compilers at once: one a core, as far as memory reaches; at least one.

    + cores: that the box may use
    + memory_bytes: that is free within the container's own limit
    """
    return max(1, min(cores, memory_bytes // (GIB_A_JOB << 30)))


def cuda_differs(torch_cuda: str | None, nvcc: str) -> bool:
    """Whether torch's extension builder would refuse: it compares the major version, and warns about the minor.

    + torch_cuda: as `13.0`; None: torch is not there, or knows no CUDA
    + nvcc: as `13.1`
    """
    return torch_cuda is not None and torch_cuda.partition(".")[0] != nvcc.partition(".")[0]


def key(inputs: Mapping[str, str]) -> str:
    """Name of the wheel that is made of exactly these: 24 hexadecimal digits."""
    return hashlib.sha256(json.dumps(dict(inputs), sort_keys=True).encode()).hexdigest()[:24]


def kept(key: str) -> Path:
    """Folder on the controller for the wheel of that key; it is there whole or not at all."""
    return paths.cache() / "source-wheels" / key
