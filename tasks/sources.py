"""Step `sources`: NVIDIA's packages, from one signed source with a valid key."""

from functools import partial
from pathlib import Path

from gpubox.deploy import step
from gpubox.facts.cuda import CudaFact
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.cuda import keyring, source
from gpubox.support.errors import GpuboxError


@step("Sources")
def sources(box: Box) -> None:
    """Own the source that `cuda.source` of the box's data names, and the key that it is signed with."""
    wish = box.settings.cuda
    if wish.source.keyring is not None and not Path(wish.source.keyring).is_file():
        raise GpuboxError(f"{box.name}: cuda.source.keyring: no file {wish.source.keyring} on this machine")
    look = partial(read, CudaFact, wish=wish)

    keyring(name="Signing key", wish=wish, look=look)
    source(name="Package source", wish=wish.source, look=look)
