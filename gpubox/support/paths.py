"""Where the parts of a checkout lie. Functions, not constants, so that tests can point elsewhere (GPUBOX_ROOT)."""

import os
from pathlib import Path


def root() -> Path:
    """The checkout: the folder that holds deploy.py. GPUBOX_ROOT overrides it."""
    return Path(os.environ.get("GPUBOX_ROOT") or Path(__file__).resolve().parents[2])


def profiles() -> Path:
    """The folder of profiles, one YAML file each."""
    return root() / "profiles"


def stacks() -> Path:
    """The folder of stacks, one folder each: stack.yaml, inputs and locks."""
    return root() / "stacks"


def templates() -> Path:
    """The folder of Jinja templates."""
    return root() / "templates"


def cache() -> Path:
    """What may be deleted at any time: downloads and built files. GPUBOX_CACHE overrides ~/.cache/gpubox."""
    return Path(os.environ.get("GPUBOX_CACHE") or Path.home() / ".cache" / "gpubox")
