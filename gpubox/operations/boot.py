"""The kernel command line of the next boot."""

import base64
import shlex
from collections.abc import Callable, Sequence

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.context import host

from gpubox.hypervisor import boot
from gpubox.hypervisor.state import HypervisorHost
from gpubox.operations import Commands, operation
from gpubox.support.errors import GpuboxError


@operation()
def kernel_command_line(words: Sequence[str], look: Callable[[], HypervisorHost]) -> Commands:
    """Bring words into the next boot's kernel command line, through the boot loader that the machine really uses.

    Nothing is rebooted. A marker lies beside while the loader has not been told, so that an interrupted run is
    completed by the next.

    + words: as `iommu=pt`; none: our own file for GRUB goes
    + look: gives the hypervisor's state
    """
    try:
        wanted = boot.change(look().boot_files, words)
    except GpuboxError as error:
        raise OperationError(f"{host.name}: {error.message}") from error
    if not wanted.commands:
        return
    folder, marker = shlex.quote(boot.MARKER.rpartition("/")[0]), shlex.quote(boot.MARKER)
    yield StringCommand(f"mkdir -p {folder} && : >{marker} && sync {marker}")
    for path, text in wanted.files.items():
        yield StringCommand("rm", "-f", QuoteString(path)) if text is None else _write(path, text)
    for command in wanted.commands:
        yield StringCommand(*map(QuoteString, command))
    yield StringCommand("rm", "-f", QuoteString(boot.MARKER))


def _write(path: str, text: str) -> StringCommand:
    new, old = shlex.quote(f"{path}.gpubox-new"), shlex.quote(path)
    folder = shlex.quote(path.rpartition("/")[0])
    return StringCommand(
        f"mkdir -p {folder} && base64 -d >{new} && chmod 644 {new}",
        f"&& sync {new} && mv -fT {new} {old} && sync {folder}",
        _stdin=base64.b64encode(text.encode()).decode(),
    )
