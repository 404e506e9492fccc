"""A program of gpubox.remote and the modules that it imports, as one text for a Python that has none of them."""

from collections.abc import Sequence
from pathlib import Path

import gpubox

_BEGIN = """import sys, types
def _module(name, text):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
_module("gpubox", "")
_module("gpubox.remote", "")
"""


def joined(program: str, needs: Sequence[str]) -> str:
    """The text of gpubox.remote's `program`, behind those of the modules that it needs, in the order of their need."""
    modules = [f"_module({f'gpubox.remote.{name}'!r}, {_text(name)!r})\n" for name in needs]
    main = f"exec(compile({_text(program)!r}, {program!r}, 'exec', dont_inherit=True))\n"
    return "".join([_BEGIN, *modules, main])


def _text(name: str) -> str:
    return (Path(gpubox.__file__).parent / "remote" / f"{name}.py").read_text()
