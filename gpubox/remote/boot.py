"""Import this package out of an archive that came on the command line; nothing is written on the box.

    python3 -I -c TEXT-OF-THIS-FILE ARCHIVE PROGRAM WORD...

ARCHIVE holds the text of each module by its name: JSON, zlib, base85 (gpubox.support.payload makes it). PROGRAM is a
module of this package; its `main` gets the words and returns the exit code.
"""

from __future__ import annotations

import base64
import importlib
import json
import sys
import zlib
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "gpubox.remote"


class Archive:
    """Finds and loads the modules of one archive. In memory: a zip file would need a place to lie."""

    def __init__(self, packed: str) -> None:
        self._texts: dict[str, str] = json.loads(zlib.decompress(base64.b85decode(packed)))

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """How to load the module; None: it is not in here."""
        if name not in self._texts:
            return None
        is_package = any(other.startswith(f"{name}.") for other in self._texts)
        loader: object = self
        return ModuleSpec(name, loader, origin=self._file(name), is_package=is_package)  # type: ignore[arg-type] # importlib's classes cost 10 ms to import

    def create_module(self, spec: ModuleSpec) -> None:
        """A module as Python makes it."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's text."""
        name = module.__name__
        code = compile(self._texts[name], self._file(name), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - what a loader is for

    def get_source(self, name: str) -> str | None:
        """The text, for the lines in a traceback."""
        return self._texts.get(name)

    def _file(self, name: str) -> str:
        return name.replace(".", "/") + ".py"


def main(words: list[str]) -> int:
    """Run the program that the words name; returns its exit code."""
    packed, program, *rest = words
    finder: object = Archive(packed)
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type] # as above
    sys.argv = [program, *rest]
    return int(importlib.import_module(f"{PACKAGE}.{program}").main(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
