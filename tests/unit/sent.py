"""Run a program of gpubox.remote as a box does."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from gpubox.support import payload


def run(
    program: str,
    *words: str,
    given: object = None,
    python: str,
    flags: Sequence[str] = payload.ISOLATED,
    changed: Mapping[str, tuple[str, str]] | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """What became of it.

    + given: on its stdin, as JSON
    + changed: module, as `probe` -> a text in it, and what stands there instead
    """
    command = payload.words(program, *words, python=python, flags=flags)
    if changed:
        texts = dict(payload.texts(program))
        for module, (old, new) in changed.items():
            name = f"{payload.PACKAGE}.{module}"
            assert old in texts[name], f"{old!r} is not in {name}"
            texts[name] = texts[name].replace(old, new)
        command[command.index(payload.pack(payload.texts(program)))] = payload.pack(texts)
    stdin: dict[str, Any] = {"stdin": subprocess.DEVNULL} if given is None else {"input": json.dumps(given)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **stdin)
