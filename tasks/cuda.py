"""Step `cuda`: toolkits side by side, in exact versions where given, and the system's default through alternatives."""

from functools import partial

from gpubox.catalog import matrix
from gpubox.cuda import packages as names
from gpubox.deploy import step
from gpubox.facts.cuda import CudaFact
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.cuda import compilers, default_toolkit, headers, report
from gpubox.operations.files import owned_files
from gpubox.operations.packages import foresee, installed
from gpubox.support.owned_file import OwnedFile


@step("CUDA")
def cuda(box: Box) -> None:
    """Bring the toolkits to what `cuda` in the box's data says. The service's CUDA_HOME comes from its stack."""
    wish = box.settings.cuda
    look = partial(read, CudaFact, wish=wish)
    packages = names.wishes(wish.toolkits, wish.parts, wish.exact)
    state = look()
    missing = names.not_carried(state.distribution, wish.toolkits, matrix().first_toolkit)
    if missing is not None and wish.source.uri is None:
        raise missing
    foresee(packages, state.packages)

    pins = names.pins(wish.exact)
    files = [OwnedFile(names.LOGIN_FILE, names.LOGIN_TEXT), *([OwnedFile(names.PINS, pins)] if pins else [])]
    owned_files(
        name="Logins and exact versions", files=files, look=lambda: look().files, absent=[] if pins else [names.PINS]
    )
    installed(
        name=f"Toolkits {', '.join(wish.toolkits)}",
        names=packages,
        look=lambda: look().packages,
        sources=[names.repository(wish.source.uri, state.distribution)],
    )
    compilers(
        name="Compilers answer",
        toolkits=[version for version in wish.toolkits if names.has_compiler(version, wish.parts)],
        look=look,
    )
    service = box.stack.cuda_home
    if service in wish.toolkits:
        headers(name="Headers for kernels compiled at run time", service=service, look=look)
    default_toolkit(name=f"Default {wish.default}", version=wish.default, look=look)
    report(name="What programs may trip over", look=look)
