"""Step `cuda`: toolkits side by side from one signed source, and the system's default through update-alternatives."""

from functools import partial
from pathlib import Path

from pyinfra.api import OperationError

from gpubox.cuda import toolkit_package
from gpubox.deploy import step
from gpubox.facts.cuda import CudaFact
from gpubox.facts.once import read
from gpubox.inventory import Box
from gpubox.operations.cuda import compilers, default_toolkit, keyring, source
from gpubox.operations.packages import installed


@step("CUDA")
def cuda(box: Box) -> None:
    """Bring the toolkits to what `cuda` in the box's data says. The service's CUDA_HOME comes from its stack."""
    wish = box.settings.cuda
    if wish.source.keyring is not None and not Path(wish.source.keyring).is_file():
        raise OperationError(f"{box.name}: cuda.source.keyring: no file {wish.source.keyring} on this machine")
    look = partial(read, CudaFact, toolkits=wish.toolkits)
    toolkits = [toolkit_package(version) for version in wish.toolkits]

    keyring(name="Signing key", source=wish.source, look=look)
    source(name="Package source", wish=wish.source, look=look)
    installed(name=f"Toolkits {', '.join(wish.toolkits)}", names=toolkits, look=lambda: look().packages)
    compilers(name="Compilers answer", toolkits=wish.toolkits, look=look)
    default_toolkit(name=f"Default {wish.default}", version=wish.default, look=look)
