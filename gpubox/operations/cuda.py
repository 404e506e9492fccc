"""CUDA's package source, its toolkits side by side, and the system's default."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pyinfra import host, logger
from pyinfra.api import FileUploadCommand, OperationError, QuoteString, StringCommand

from gpubox.apt import judge
from gpubox.cuda import packages as cuda
from gpubox.facts.cuda import LINK, CudaFact, CudaState
from gpubox.operations import Commands, operation
from gpubox.operations.apt import APT, FRONTEND, explained, installation, refused, update, waiting
from gpubox.operations.files import put
from gpubox.operations.packages import is_met
from gpubox.operations.progress import shown
from gpubox.settings.host import AptSource, Cuda
from gpubox.support.owned_file import OwnedFile

_FOLDER = "/var/lib/gpubox/download"
_DOWNLOADED = f"{_FOLDER}/{cuda.KEYRING_DEB}"


@operation()
def keyring(wish: Cuda, look: Callable[[], CudaState]) -> Commands:
    """
    Have the key that signs the CUDA repository, valid and as its package brings it; else install that package again.

    + wish: `source` says where it comes from
    + look: gives the CudaState of the host
    """
    state, source = look(), wish.source
    trouble = judge.keyring(state.keyring, source.fingerprint, state.distribution, datetime.now(UTC))
    if is_met(cuda.KEYRING_PACKAGE, state.packages) and not state.keyring_changed and trouble is None:
        return
    if state.keyring is not None and trouble is not None:
        logger.warning(f"{host.print_prefix}{cuda.KEYRING_FILE}: {trouble.found}: its package is installed again")
    deb = QuoteString(_DOWNLOADED)
    yield StringCommand("mkdir -p -m 700", _FOLDER)
    if source.keyring is not None:
        yield FileUploadCommand(str(Path(source.keyring)), _DOWNLOADED)
    else:
        url = cuda.repository(source.uri, state.distribution) + cuda.KEYRING_DEB
        known = cuda.KEYRING_SHA256.get(cuda.distribution_name(state.distribution))
        if known is None:
            raise OperationError(
                f"no SHA-256 of {cuda.KEYRING_DEB} is known for {state.distribution}: set source.keyring"
            )
        yield StringCommand("curl -fsSL --retry 3 -o", deb, QuoteString(url))
        yield StringCommand("echo", QuoteString(f"{known}  {_DOWNLOADED}"), "| sha256sum --check")
    install = StringCommand(waiting(), f"&& {FRONTEND} dpkg --force-confold --force-confmiss -i", deb, "&& rm -f", deb)
    yield shown(install, f"installing {cuda.KEYRING_PACKAGE}", explained)
    installed = host.get_fact(CudaFact, wish=wish)
    still = judge.keyring(installed.keyring, source.fingerprint, installed.distribution, datetime.now(UTC))
    if still is not None:
        yield refused(still.found, still.needed, still.todo)


@operation()
def source(wish: AptSource, look: Callable[[], CudaState]) -> Commands:
    """
    Own the one source of the CUDA packages: a deb822 file, and not the list that cuda-keyring brings beside it.

    + wish: where the packages come from
    + look: gives the CudaState of the host
    """
    state = look()
    for path in state.files:
        if cuda.is_own_list(path):
            yield StringCommand("rm -f", QuoteString(path))
    file = OwnedFile(cuda.SOURCE_FILE, cuda.sources(cuda.repository(wish.uri, state.distribution)))
    if not file.is_at(state.files[cuda.SOURCE_FILE]):
        yield from put(file)


@operation()
def compilers(toolkits: Sequence[str], look: Callable[[], CudaState]) -> Commands:
    """
    Put back the compiler of an installed toolkit whose nvcc is gone or says another release than its folder.

    + toolkits: versions, as `12.8`, of those that have one
    + look: gives the CudaState of the host
    """
    state = look()
    broken = [version for version in toolkits if state.nvcc[version] != version]
    if broken:
        names = [cuda.nvcc_package(version) for version in broken]
        install = StringCommand(
            APT, "install --reinstall --no-install-recommends", *(QuoteString(name) for name in names)
        )
        yield shown(install, f"installing {', '.join(names)} again", explained)


@operation()
def headers(service: str, look: Callable[[], CudaState]) -> Commands:
    """
    Add what kernels compiled at run time include and the service's toolkit lacks, as it may when it is there in parts.

    + service: the toolkit that the service compiles with
    + look: gives the CudaState of the host
    """
    lacking = look().lacking_headers.get(service, [])
    if lacking:
        names = [f"{cuda.JIT_HEADERS[header]}-{service.replace('.', '-')}" for header in lacking]
        yield update()
        yield installation(f"adding {', '.join(lacking)} to toolkit {service}", *names)


@operation()
def default_toolkit(version: str, look: Callable[[], CudaState]) -> Commands:
    """
    Choose what /usr/local/cuda is, through update-alternatives: a hand-made link would be flipped by the next package.

    After the last package operation of a run: each of them may choose anew (P20).

    + version: as `13.1`; must be one of the installed toolkits
    + look: gives the CudaState of the host
    """
    state, home = look(), cuda.home(version)
    chosen = state.alternatives is not None and state.alternatives.manual and state.alternatives.value == home
    if chosen and state.link == home:
        return
    yield StringCommand("update-alternatives --set cuda", QuoteString(home))
    yield StringCommand(
        f'test "$(readlink -e {LINK})" =',
        QuoteString(home),
        f"|| {{ echo {LINK} is no link of alternatives >&2; exit 1; }}",
    )


@operation()
def report(look: Callable[[], CudaState]) -> Commands:
    """
    Say what programs may trip over; nothing is changed.

    + look: gives the CudaState of the host
    """
    state, say = look(), host.print_prefix
    if len(state.runtimes) > 1:
        both = ", ".join(f"{name} ({path})" for name, path in sorted(state.runtimes.items()))
        logger.warning(
            f"{say}the loader finds {both}: a program that searches instead of linking may take the wrong one "
            "(https://github.com/NVIDIA/cudnn-frontend/issues/211); the service has its own CUDA_HOME"
        )
    for line in state.library_path:
        logger.warning(f"{say}LD_LIBRARY_PATH for every login, {line}: it mixes toolkits; remove it")
    yield from ()
