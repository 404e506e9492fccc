"""Send a program of gpubox.remote to a box: as one archive on the command line, nothing of it is left there.

Everything that runs on a box is sent by this file alone. The archive holds the program and what it imports of
gpubox.remote; `gpubox/remote/boot.py` unpacks it there.
"""

import ast
import base64
import json
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import gpubox

PACKAGE = "gpubox.remote"
ISOLATED = ("-I",)
"""Neither the folder where Python is started nor the environment says what is imported."""
BARE = ("-I", "-S")
"""And no site-packages, which take longer to set up than a small program runs."""


def words(program: str, *more: str, python: str = "python3", flags: Sequence[str] = ISOLATED) -> list[str]:
    """The argv that runs a program on the box.

    + program: a module of gpubox.remote, as `switch`, with a `main(words)`
    + more: the words that it gets
    + python: the interpreter there
    + flags: of the interpreter
    """
    return [python, *flags, *after_python(program, *more)]


def after_python(program: str, *more: str) -> list[str]:
    """What stands after the interpreter and its flags."""
    return ["-c", _text(f"{PACKAGE}.boot"), _archive(program), program, *more]


def shell(
    program: str,
    *more: str,
    given: object = None,
    python: str = "python3",
    flags: Sequence[str] = ISOLATED,
) -> str:
    """The same as text for a shell.

    + given: goes to the program's stdin as JSON; None: its stdin is left as it is
    """
    command = shlex.join(words(program, *more, python=python, flags=flags))
    return command if given is None else f"printf %s {shlex.quote(json.dumps(given))} | {command}"


@cache
def texts(program: str) -> Mapping[str, str]:
    """Module -> its text: the program, the packages around it, and all that they import of gpubox.remote."""
    found = {"gpubox": ""}  # the package that holds gpubox.remote; its own text is of no use on a box
    left = [f"{PACKAGE}.{program}"]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = _text(name)
            left += [name.rpartition(".")[0], *_imported(name)]
    return found


def pack(modules: Mapping[str, str]) -> str:
    """An archive for `gpubox/remote/boot.py`: the same bytes for the same texts."""
    packed = zlib.compress(json.dumps(modules, sort_keys=True).encode(), 9)
    return base64.b85encode(packed).decode()  # no quotes in its alphabet, and 6 % shorter than base64


def _imported(name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(_text(name))):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (one for one in named if one.startswith(PACKAGE) and _file(one) is not None)


@cache
def _archive(program: str) -> str:
    return pack(texts(program))


@cache
def _text(name: str) -> str:
    file = _file(name)
    if file is None:
        raise LookupError(f"there is no module {name} to send")
    return file.read_text()


def _file(name: str) -> Path | None:
    path = Path(gpubox.__file__).parent.joinpath(*name.split(".")[1:])
    candidates = [path / "__init__.py", path.with_name(f"{path.name}.py")]
    return next((file for file in candidates if file.is_file()), None)
