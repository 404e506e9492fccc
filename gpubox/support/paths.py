"""Where things lie: what gpubox ships, and what a person's project holds.

Functions, not constants, so that tests can point elsewhere: GPUBOX_ROOT names one folder for both.
"""

import os
from pathlib import Path

from gpubox.support.errors import GpuboxError

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "_data"
"""There only in an installed package: pyproject.toml puts the checkout's folders into the wheel below it."""
_PARTS = ("inventory", "group_data", "profiles", "stacks")
"""Folders that make a folder a project."""


def root() -> Path:
    """What gpubox ships, the folder that holds deploy.py: the checkout, or what an installed package holds of it."""
    told = os.environ.get("GPUBOX_ROOT")
    if told:
        return Path(told)
    return _INSTALLED if is_installed() else _PACKAGE.parent


def is_installed() -> bool:
    """Whether the program runs outside a checkout, so that nothing can be written to what it ships."""
    return _INSTALLED.is_dir()


def project() -> Path:
    """The folder whose inventory, group data, profiles and stacks count: the current one where it has one of these.

    Without any the checkout that the program runs from; an installed program stays with the current folder.
    Error: the current folder was removed.
    """
    told = os.environ.get("GPUBOX_ROOT")
    if told:
        return Path(told)
    try:
        here = Path.cwd()
    except FileNotFoundError as error:
        raise GpuboxError("the current folder was removed", "one that is there", "cd") from error
    is_project = any((here / part).is_dir() for part in _PARTS)
    return here if is_project or is_installed() else root()


def profiles() -> Path:
    """The project's folder of profiles, one YAML file each."""
    return project() / "profiles"


def profile_folders() -> list[Path]:
    """Where profiles are looked for; a name in both means the first."""
    return _both(profiles(), root() / "profiles")


def stacks() -> Path:
    """The project's folder of stacks, one folder each: stack.yaml, inputs and locks."""
    return project() / "stacks"


def stack_folders() -> list[Path]:
    """Where stacks are looked for; a name in both means the first."""
    return _both(stacks(), root() / "stacks")


def is_shipped(path: Path) -> bool:
    """Whether a profile or stack is gpubox's own, not a person's. In a checkout all of its own count as shipped."""
    return any(path.is_relative_to(root() / part) for part in ("profiles", "stacks"))


def local_package(folder: str) -> Path:
    """A folder that a stack names as a local package: of the project, else of gpubox itself."""
    own = project() / folder
    return own if own.is_dir() else _PACKAGE.parent / folder


def lab_recipe(name: str) -> Path:
    """A file of the practice machine that is sent to boxes as it is."""
    return _PACKAGE / "lab" / name


def templates() -> Path:
    """The folder of Jinja templates."""
    return root() / "templates"


def cache() -> Path:
    """What may be deleted at any time: downloads and built files. GPUBOX_CACHE overrides ~/.cache/gpubox."""
    return Path(os.environ.get("GPUBOX_CACHE") or Path.home() / ".cache" / "gpubox")


def _both(own: Path, shipped: Path) -> list[Path]:
    return [shipped] if own.resolve() == shipped.resolve() else [own, shipped]
