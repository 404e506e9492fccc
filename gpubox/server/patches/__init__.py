"""Source patches of the installed SGLang, applied on the box by gpubox.remote.patch with the venv's own python."""

import hashlib

from pyinfra.api import StringCommand

from gpubox.remote import patch
from gpubox.support import payload
from gpubox.support.errors import GpuboxError


def names() -> list[str]:
    """All patches, as a stack's `patches` names them."""
    return sorted(patch.GATES)


def checked(wanted: list[str]) -> list[str]:
    """The same names. Errors: one that is not known."""
    if unknown := sorted(set(wanted) - set(names())):
        raise GpuboxError(f"no source patch named {', '.join(unknown)}", f"some of: {', '.join(names())}")
    return wanted


def command(action: str, venv: str, wanted: list[str]) -> StringCommand:
    """The shell command that does `action` (state, apply or revert) in the venv; nothing is left on the box."""
    return StringCommand(payload.shell("patch", action, *checked(wanted), python=f"{venv}/bin/python"))


def digest(wanted: list[str]) -> str:
    """Of what the patches make of a file: part of the name of a venv that is never edited later."""
    revisions = [patch.GATES[name].revision for name in sorted(checked(wanted))]
    if len(revisions) == 1:
        return revisions[0]
    return hashlib.sha256("\n".join(revisions).encode()).hexdigest()
