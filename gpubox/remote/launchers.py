"""How a model server is started: what of a command line is the interpreter's, what the launcher's, what the server's.

Runs on the machine that is looked at, and in gpubox itself; standard library only.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

SGLANG_MODULES = ("sglang.launch_server",)
SGLANG_COMMANDS = ("sglang", "sglang.cli.main")
"""Modules that are the command `sglang`."""
VLLM_MODULES = ("vllm.entrypoints.openai.api_server",)
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*[a-z]*")


class Launch(NamedTuple):
    """A server's command line, taken apart."""

    engine: str
    """sglang or vllm."""
    python_args: list[str]
    """Of the interpreter itself, as `-u`."""
    words: list[str]
    """The server's flags with their values, as `python -m sglang.launch_server` would get them."""
    model_type: str
    """What `sglang serve --model-type` was told; empty: nothing."""


class _Program(NamedTuple):
    """What an interpreter was asked to run."""

    python_args: list[str]
    module: str
    script: str
    words: list[str]


def launch(argv: list[str], folder: str = "", program: str = "") -> Launch | None:
    """The server that a command line starts; None: it starts none.

    A shell, docker, torchrun or uv that starts one in a process of its own is none: that process is.

    + folder: the process's working directory, for a script that is named from there
    + program: the file that the process really runs; empty: not known, so the command line's word counts
    """
    if not argv or not (_is_interpreter(argv[0]) or _is_interpreter(program)):
        return None
    found = _program(argv)
    if found is None:
        return None
    path = os.path.join(folder, found.script) if found.script else ""  # noqa: PTH118 - a word, maybe no path here
    if found.module in SGLANG_MODULES or path.endswith("/sglang/launch_server.py"):
        return Launch("sglang", found.python_args, found.words, "")
    if found.module in VLLM_MODULES or path.endswith("/vllm/entrypoints/openai/api_server.py"):
        return Launch("vllm", found.python_args, found.words, "")
    if found.words[:1] != ["serve"]:
        return None
    name = _base(found.script)
    if found.module in SGLANG_COMMANDS or name == "sglang" or path.endswith("/sglang/cli/main.py"):
        words, model_type = _served(found.words[1:])
        return Launch("sglang", found.python_args, words, model_type)
    if found.module == "vllm" or name == "vllm":
        return Launch("vllm", found.python_args, found.words[1:], "")
    return None


def _program(argv: list[str]) -> _Program | None:
    """As python(1) reads its command line: options up to -m, -c or the script. None: -c, or nothing to run."""
    at = 1
    while at < len(argv):
        word = argv[at]
        if word in _WITH_VALUE:
            at += 2
        elif word.startswith("--"):
            at += 1
        elif word.startswith("-") and word != "-":
            letter = _last_letter(word)
            if letter == "c":
                return None
            if letter == "m":
                return _of_module(argv, at)
            at += 1
        else:
            return _Program(argv[1:at], "", word, argv[at + 1 :])
    return None


def _of_module(argv: list[str], at: int) -> _Program | None:
    """`-m NAME`, `-mNAME`, and both behind other letters, as `-um NAME`."""
    word = argv[at]
    before, _, attached = word.partition("m")
    own = [*argv[1:at], *([before] if before != "-" else [])]
    if attached:
        return _Program(own, attached, "", argv[at + 1 :])
    if at + 1 >= len(argv):
        return None
    return _Program(own, argv[at + 1], "", argv[at + 2 :])


def _last_letter(word: str) -> str:
    """The letter of a group of short options that takes what follows; empty: none does."""
    for letter in word[1:]:
        if letter in "cm":
            return letter
        if letter in "XW":  # the rest of the word is its value
            return ""
    return ""


def _served(words: list[str]) -> tuple[list[str], str]:
    """`sglang serve MODEL ...` as the flags of the launcher, and the type of model that it was told."""
    named = ["--model-path"] if words and not words[0].startswith("-") else []
    left, kind, at = [*named], "", 0
    while at < len(words):
        if words[at] == "--model-type" and at + 1 < len(words):
            kind, at = words[at + 1], at + 2
        elif words[at].startswith("--model-type="):
            kind, at = words[at].partition("=")[2], at + 1
        else:
            left.append(words[at])
            at += 1
    return left, kind


def _is_interpreter(path: str) -> bool:
    return bool(_INTERPRETER.fullmatch(_base(path)))


def _base(path: str) -> str:
    return path.rpartition("/")[2]
