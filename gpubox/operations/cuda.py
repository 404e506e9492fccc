"""CUDA's package source, its toolkits side by side, and the system's default."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pyinfra.api import FileUploadCommand, OperationError, QuoteString, StringCommand, operation

from gpubox import cuda
from gpubox.facts.cuda import LINK, CudaState
from gpubox.operations import Commands
from gpubox.operations.files import OwnedFile, put
from gpubox.operations.packages import APT, is_met
from gpubox.settings import AptSource

_DOWNLOADED = f"/var/tmp/{cuda.KEYRING_DEB}"  # noqa: S108 - checked by its SHA-256 or sent by us, root's own


@operation()
def keyring(source: AptSource, look: Callable[[], CudaState]) -> Commands:
    """
    Install the package cuda-keyring, which holds the key that signs the CUDA repository.

    + source: where it comes from
    + look: gives the CudaState of the host
    """
    state = look()
    if is_met(cuda.KEYRING_PACKAGE, state.packages) and state.files[cuda.KEYRING_FILE].kind == "file":
        return
    deb = QuoteString(_DOWNLOADED)
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
        yield StringCommand("echo", QuoteString(f"{known}  {_DOWNLOADED}"), "| sha256sum --check --status")
    yield StringCommand("dpkg --force-confmiss -i", deb, "&& rm -f", deb)


@operation()
def source(wish: AptSource, look: Callable[[], CudaState]) -> Commands:
    """
    Own the one source of the CUDA packages: a deb822 file, and not the list that cuda-keyring brings beside it.

    + wish: where the packages come from
    + look: gives the CudaState of the host
    """
    state = look()
    own = cuda.own_list(state.distribution)
    if own in state.files:
        yield StringCommand("rm -f", QuoteString(own))
    file = OwnedFile(cuda.SOURCE_FILE, cuda.sources(cuda.repository(wish.uri, state.distribution)))
    if not file.is_at(state.files[cuda.SOURCE_FILE]):
        yield from put(file)


@operation()
def compilers(toolkits: Sequence[str], look: Callable[[], CudaState]) -> Commands:
    """
    Put back the compiler of an installed toolkit whose nvcc is gone or says another release than its folder.

    + toolkits: versions, as `12.8`
    + look: gives the CudaState of the host
    """
    broken = [version for version in toolkits if look().nvcc[version] != version]
    if broken:
        names = [cuda.nvcc_package(version) for version in broken]
        yield StringCommand(APT, "install --reinstall --no-install-recommends", *(QuoteString(name) for name in names))


@operation()
def default_toolkit(version: str, look: Callable[[], CudaState]) -> Commands:
    """
    Choose what /usr/local/cuda is, through update-alternatives: a hand-made link would be flipped by the next package.

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
