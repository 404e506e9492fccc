"""Stacks: one object for the SGLang release, its locked packages, torch's CUDA and the service's toolkit."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from gpubox import paths
from gpubox.data import Model, read_yaml, validated
from gpubox.errors import GpuboxError


class Lock(Model):
    """One lock file with hashes, made by `uv pip compile` from its input beside it."""

    file: str
    """Name below stacks/NAME/."""
    no_deps: bool = False
    """Install exactly what the lock lists, without asking for its dependencies."""


class SourceBuild(Model):
    """A package that must be built from source on the box, against the stack's own toolkit."""

    package: str
    version: str
    cuda: str
    """Toolkit to build against, as `12.8`."""


class Stack(Model):
    """What a service runs on. Bad combinations are errors before a host is touched."""

    name: str
    summary: str
    sglang: str
    """SGLang's exact version, a key of the catalogue's releases."""
    python: str
    """Python of the venv, as `3.11`: a lock made for one version fails on another (environment markers)."""
    device: Literal["cpu", "cuda"]
    torch: str
    """torch's exact version."""
    torch_cuda: str | None
    """CUDA that torch was built with, as `13.0`; None: a CPU build."""
    cuda_home: str
    """Toolkit that the service sees as CUDA_HOME, as `13.1`. The system default is a separate setting of the box."""
    locks: list[Lock] = Field(min_length=1)
    local_packages: list[str] = Field(default_factory=list)
    """Folders of this repository that are built into wheels and offered to the installer beside the index."""
    source_builds: list[SourceBuild] = Field(default_factory=list)
    patches: list[str] = Field(default_factory=list)
    """Source patches to apply after the install, by name."""
    status: Literal["current", "history", "practice"] = "current"
    notes: list[str] = Field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return paths.stacks() / self.name

    @property
    def cuda_home_path(self) -> str:
        """CUDA_HOME of the service: NVIDIA's packages install a toolkit as /usr/local/cuda-X.Y."""
        return f"/usr/local/cuda-{self.cuda_home}"


def names() -> list[str]:
    """All stacks, sorted."""
    return sorted(p.parent.name for p in paths.stacks().glob("*/stack.yaml"))


def load(name: str) -> Stack:
    """The stack `name`. Errors: unknown name (the known ones are listed), wrong keys, a lock that is not there."""
    known = names()
    if name not in known:
        raise GpuboxError(f"no stack named {name!r} below {paths.stacks()}", f"one of: {', '.join(known)}")
    path = paths.stacks() / name / "stack.yaml"
    stack = validated(Stack, {"name": name, **read_yaml(path)}, str(path))
    missing = [lock.file for lock in stack.locks if not (stack.folder / lock.file).is_file()]
    if missing:
        raise GpuboxError(f"{path} names locks that are not there: {', '.join(missing)}", "files beside it")
    return stack
