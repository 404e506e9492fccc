"""What is sent to a box: everything that a program needs, nothing else, small enough for a command line."""

import ast
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import gpubox
from gpubox.support import payload
from tests.unit import sent

FOLDER = Path(gpubox.__file__).parent / "remote"
LONGEST = 128 * 1024
"""Bytes of one argument: MAX_ARG_STRLEN of Linux; a login shell gets a command as one."""


def _is_program(file: Path) -> bool:
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return file.stem != "boot" and any(function.name == "main" for function in functions)


PROGRAMS = [
    ".".join(file.relative_to(FOLDER).with_suffix("").parts)
    for file in sorted(FOLDER.rglob("*.py"))
    if _is_program(file)
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_imports_all_that_it_needs(program: str, remote_python: str) -> None:
    """With the standard library alone, and without a main that runs."""
    names = [name for name in payload.texts(program) if name.startswith(payload.PACKAGE)]
    imports = f"import {', '.join(sorted(names))}\n\ndef main(words):\n    print(*words)\n    return 3\n"
    texts = {**payload.texts(program), f"{payload.PACKAGE}.first": imports}
    boot = payload.after_python(program)[1]
    command = [remote_python, "-I", "-S", "-c", boot, payload.pack(texts), "first", "a b", "c"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "a b c\n", "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_fits_a_command_line_even_when_a_shell_in_a_shell_runs_it(program: str) -> None:
    assert len(shlex.quote(shlex.quote(payload.shell(program)))) < LONGEST // 3


def test_only_what_is_needed_is_sent() -> None:
    assert set(payload.texts("speed")) == {
        "gpubox",
        *(f"gpubox.remote{name}" for name in ("", ".endpoint", ".speed")),
    }


def test_the_same_texts_are_the_same_bytes() -> None:
    texts = {"b": "2", "a": "1"}
    assert payload.pack(texts) == payload.pack(dict(reversed(texts.items())))


@pytest.mark.parametrize("given", [{"a": "it's", "b": ["$x", "\n", "%s"]}, None, []])
def test_what_is_given_arrives(given: Any, remote_python: str, tmp_path: Path) -> None:
    """Through a real shell. None: what stdin was before."""
    echo = "import sys\n\ndef main(words):\n    print(sys.stdin.read(), end='')\n    return 0\n"
    text = payload.shell("venv_state", given=given, python=remote_python)
    archive, name = payload.pack(payload.texts("venv_state")), f"{payload.PACKAGE}.venv_state"
    text = text.replace(archive, payload.pack({**payload.texts("venv_state"), name: echo}))
    (tmp_path / "stdin").write_text("null")
    with (tmp_path / "stdin").open() as stdin:
        done = subprocess.run(["/bin/sh", "-c", text], stdin=stdin, capture_output=True, text=True)
    assert json.loads(done.stdout) == given


def test_a_fault_is_shown_with_its_line(remote_python: str) -> None:
    done = sent.run("speed", given={}, python=remote_python)
    assert done.returncode == 1
    assert 'gpubox/remote/speed.py", line ' in done.stderr
    assert "asked['url']" in done.stderr or 'asked["' in done.stderr


@pytest.mark.parametrize("folder", ["operations", "facts", "server", "doctor", "onboard", "bench"])
def test_nothing_else_sends_python(folder: str) -> None:
    """One way to send: no other file hands a program's text to a Python on a box."""
    for file in (FOLDER.parent / folder).rglob("*.py"):
        assert "__file__).read_text()" not in file.read_text(), file
        assert '"python3", "-' not in file.read_text(), file
