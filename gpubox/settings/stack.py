"""Stacks: one object for the SGLang release, its locked packages, torch's CUDA and the service's toolkit."""

from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field

from gpubox.settings import lockfile, wheels
from gpubox.support import paths
from gpubox.support.data import Model, named, read_yaml
from gpubox.support.errors import GpuboxError

LOCAL_LOCK = "local.lock"
"""Beside the locks of a stack with local packages: the hashes of their wheels."""


class Lock(Model):
    """One lock file with hashes, made by `gpubox lock` from its input beside it."""

    file: str = Field(pattern=r"^[a-z0-9-]+\.lock$")
    """Name below stacks/NAME/; its input has the ending .in."""
    no_deps: bool = False
    """Lock exactly what the input lists, without asking for its dependencies."""
    overrides: str | None = None
    """A file below stacks/NAME/ whose requirements replace what packages ask for."""

    @property
    def inputs(self) -> list[str]:
        """Names of the files that it was made from."""
        return [self.file.removesuffix(".lock") + ".in", *([self.overrides] if self.overrides else [])]


class SourceBuild(Model):
    """A package that is built from source on the box, against a toolkit of its own, after the locked ones."""

    package: str
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of its source archive in the index."""
    cuda: str
    """Toolkit to build against, as `12.8`."""
    environment: dict[str, str] = Field(default_factory=dict)
    """What its build reads besides CUDA_HOME."""


class Stack(Model):
    """What a service runs on. Bad combinations are errors before a host is touched."""

    name: str
    """Its folder below stacks/; not written in the file."""
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
    find_links: str | None = None
    """Page of wheels that the index has not, as PyTorch's CPU builds. A host's own PIP_FIND_LINKS takes its place."""
    local_packages: list[str] = Field(default_factory=list)
    """Folders, of the project or of gpubox, built into wheels that are offered to the installer beside the index."""
    source_builds: list[SourceBuild] = Field(default_factory=list)
    patches: list[str] = Field(default_factory=list)
    """Source patches to apply after the install, by name."""
    status: Literal["current", "history", "practice"] = "current"
    notes: list[str] = Field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return _folder(self.name)

    @property
    def pins(self) -> dict[str, str]:
        """Name -> version of every locked package: all that its venv may hold, besides source builds.

        Errors: a lock that is not one; a package locked twice with different versions.
        """
        found: dict[str, str] = {}
        for file in self._lock_files:
            for pin in lockfile.read(file):
                if found.setdefault(pin.name, pin.version) != pin.version:
                    message = f"stack {self.name} locks {pin.name} twice: {found[pin.name]} and {pin.version}"
                    raise GpuboxError(message, "one version", f"pin it in the inputs, then `gpubox lock {self.name}`")
        return found

    def payload(self) -> dict[str, bytes]:
        """Name -> content of what a host needs to install it: `packages.lock`, local wheels, `source-builds.lock`.

        Error: a local package was changed and its committed hash was not.
        """
        if stale := self.stale_wheels():
            raise GpuboxError(stale, "the hash of the wheel that is built here", f"gpubox lock {self.name}")
        files = {"packages.lock": b"\n".join(file.read_bytes() for file in self._lock_files)}
        files.update(wheels.build(paths.local_package(folder)) for folder in self.local_packages)
        if self.source_builds:
            lines = (f"{b.package}=={b.version} --hash=sha256:{b.sha256}\n" for b in self.source_builds)
            files["source-builds.lock"] = "".join(lines).encode()
        return files

    def stale_wheels(self) -> str:
        """What is wrong with the committed hashes of the local packages; empty: nothing."""
        path = self.folder / LOCAL_LOCK
        if not self.local_packages or (path.is_file() and path.read_text() == self.local_lock()):
            return ""
        return f"{path} does not fit {', '.join(self.local_packages)} as built here"

    def local_lock(self) -> str:
        """The text of LOCAL_LOCK, from the wheels as built here."""
        built = (wheels.build(paths.local_package(folder)) for folder in self.local_packages)
        return "".join(_local_pin(name, content) for name, content in built)

    @property
    def _lock_files(self) -> list[Path]:
        names = [*(lock.file for lock in self.locks), *([LOCAL_LOCK] if self.local_packages else [])]
        return [self.folder / name for name in names]

    @property
    def cuda_home_path(self) -> str:
        """CUDA_HOME of the service: NVIDIA's packages install a toolkit as /usr/local/cuda-X.Y."""
        return f"/usr/local/cuda-{self.cuda_home}"


def names() -> list[str]:
    """All stacks, the project's and the shipped ones, sorted."""
    found = {path.parent.name for folder in paths.stack_folders() for path in folder.glob("*/stack.yaml")}
    return sorted(found)


def _folder(name: str) -> Path:
    """Where the files of a stack lie: the project's own come before the shipped ones."""
    folders = paths.stack_folders()
    return next((base / name for base in folders if (base / name / "stack.yaml").is_file()), folders[0] / name)


def load(name: str, locked: bool = True) -> Stack:
    """The stack `name`. Errors: unknown name (the known ones are listed), wrong keys, a lock that is not there.

    + locked: False for who is about to make the locks: they need not be there
    """
    known = names()
    if name not in known:
        where = " or ".join(str(folder) for folder in paths.stack_folders())
        raise GpuboxError(f"no stack named {name!r} below {where}", f"one of: {', '.join(known) or 'none there'}")
    path = _folder(name) / "stack.yaml"
    stack = named(Stack, name, read_yaml(path), path)
    missing = [file.name for file in stack._lock_files if not file.is_file()]
    if missing and locked:
        message = f"{path} names locks that are not there: {', '.join(missing)}"
        raise GpuboxError(message, "files beside it", f"gpubox lock {name}")
    return stack


def _local_pin(wheel: str, content: bytes) -> str:
    name, version = wheel.split("-")[:2]
    return f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{sha256(content).hexdigest()}\n"
