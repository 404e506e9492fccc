"""Source patches of the installed SGLang, applied on the box by `onbox.py` with the venv's own python."""

import hashlib
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand

from gpubox.remote import patch as onbox
from gpubox.support.errors import GpuboxError


def names() -> list[str]:
    """All patches, as a stack's `patches` names them."""
    return sorted(onbox.GATES)


def checked(wanted: list[str]) -> list[str]:
    """The same names. Errors: one that is not known."""
    if unknown := sorted(set(wanted) - set(names())):
        raise GpuboxError(f"no source patch named {', '.join(unknown)}", f"some of: {', '.join(names())}")
    return wanted


def command(action: str, venv: str, wanted: list[str]) -> StringCommand:
    """The shell command that does `action` (state, apply or revert) in the venv; nothing is left on the box."""
    python = f"{venv}/bin/python"
    arguments = [QuoteString(name) for name in checked(wanted)]
    return StringCommand(QuoteString(python), "-I", "-c", QuoteString(_script()), action, *arguments)


def digest(wanted: list[str]) -> str:
    """SHA-256 over the names and the code that applies them: part of the name of a venv that is never edited later."""
    return hashlib.sha256("\n".join([*sorted(checked(wanted)), _script() if wanted else ""]).encode()).hexdigest()


def _script() -> str:
    return Path(onbox.__file__).read_text()
