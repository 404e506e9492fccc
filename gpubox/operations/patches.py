"""Apply and revert source patches in a venv's SGLang."""

from collections.abc import Callable, Generator

from pyinfra import host
from pyinfra.api import StringCommand

from gpubox.operations import operation
from gpubox.remote.patch import PATCHED, UPSTREAM, Found
from gpubox.server import patches


@operation()
def source(
    venv: str, wanted: list[str], look: Callable[[], dict[str, Found]], present: bool = True
) -> Generator[StringCommand]:
    """Patch the SGLang of a venv, or give the original files back.

    + venv: path of the venv; never one that a running service uses
    + wanted: names of patches (gpubox.server.patches)
    + look: gives the fact PatchStates
    + present: False reverts

    A shape that is not known fails on the box with the file untouched. A patch that the release needs no more is
    reported and nothing is done. SGLang absent (not installed yet) counts as a change.
    """
    if not wanted:
        host.noop("no source patches wanted")
        return
    found = look()
    todo = [name for name in wanted if is_wrong(found[name], present)]
    for name in wanted:
        if name not in todo:
            host.noop(f"source patch {name}: {found[name].why}")
    if todo:
        yield patches.command("apply" if present else "revert", venv, todo)


def is_wrong(found: Found, present: bool = True) -> bool:
    """Whether there is something to do about a patch."""
    if found.stale_bytecode and found.state == PATCHED:
        return True
    return found.state not in {PATCHED, UPSTREAM} if present else found.state == PATCHED
