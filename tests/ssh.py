"""testinfra's words for a host; they live in the package, so that a person's project has them too."""

from gpubox.testing.hosts import spec

__all__ = ["spec"]
