"""Everything that is sent to a box and runs there: standard library only, may be killed at any line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

_SHARED = "from gpubox.remote import secrets"
_WITH_SHARED = """import sys, types
for name in ("gpubox", "gpubox.remote", "gpubox.remote.secrets"):
    sys.modules[name] = types.ModuleType(name)
exec({shared!r}, sys.modules["gpubox.remote.secrets"].__dict__)
sys.modules["gpubox.remote"].secrets = sys.modules["gpubox.remote.secrets"]
exec(compile({program!r}, "gpubox", "exec"))
"""


def alone(module: ModuleType) -> str:
    """The text of a program that a box runs without gpubox; what it shares with others is in it."""
    folder, program = Path(__file__).parent, Path(str(module.__file__)).read_text()
    if _SHARED not in program:
        return program
    return _WITH_SHARED.format(shared=(folder / "secrets.py").read_text(), program=program)
