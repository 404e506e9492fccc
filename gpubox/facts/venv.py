"""The state of the step `python env`: the installer, the files of the stack on the box, the venv. One command."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts import files
from gpubox.facts.answers import Fact, checked, script
from gpubox.remote.venv_state import MARKER, name_of
from gpubox.support import payload
from gpubox.support.owned_file import Entry
from gpubox.support.reading import reader

UV = "/opt/gpubox/uv/bin/uv"
"""The installer on a box, in a small venv of its own."""


@dataclass(frozen=True)
class Venv:
    """A virtual environment."""

    kind: Literal["absent", "foreign", "broken", "whole"]
    """`foreign`: something that gpubox did not make lies there; `broken`: gpubox's, but its Python does not run."""
    python: str = ""
    """As `3.11.2`; empty unless whole."""
    implementation: str = ""
    """As `CPython`; empty unless whole."""
    packages: dict[str, str] = field(default_factory=dict)
    """Normalised name -> version, by the names of their metadata folders."""
    changed: dict[str, list[str]] = field(default_factory=dict)
    """Name -> metadata folders with files that are not as they were installed, or that were never recorded."""
    config_changed: bool = False
    """pyvenv.cfg is not as it was made."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Path below the venv -> how the file is another than when it was built (gpubox.remote.tree), of the first."""
    damaged_count: int = 0
    """How many there are of these."""
    basis: str = ""
    """What that was compared with: `list`, which was written when it was built, or the packages' own `records`."""

    @property
    def is_untouched(self) -> bool:
        """Whether every file is as it was built."""
        return not self.changed and not self.config_changed and not self.damaged_count


@dataclass(frozen=True)
class PythonEnvState:
    """What `python env` compares with."""

    uv: str
    """Version of the installer; empty: none, or one that does not run."""
    files: dict[str, Entry]
    venv: Venv
    beside: Venv
    """The one that is being built, before it gets its name."""


class PythonEnv(Fact[PythonEnvState]):
    """PythonEnvState for the venv at `path`, the one at `beside`, and the given files."""

    @override
    def command(self, path: str, beside: str, paths: Sequence[str]) -> str:
        return script(
            {
                "uv": StringCommand(UV, "--version 2>/dev/null || true"),
                "files": files.question(paths),
                "venv": _look(path),
                "beside": _look(beside),
            }
        )

    @override
    def process(self, output: list[str]) -> PythonEnvState:
        found = checked(output)
        return PythonEnvState(
            uv="".join(found["uv"].lines).removeprefix("uv ").partition(" ")[0],
            files=files.parse(found["files"].lines),
            venv=parse("".join(found["venv"].lines)),
            beside=parse("".join(found["beside"].lines)),
        )


@reader("the venv")
def parse(answer: str) -> Venv:
    """The venv out of one word or the script's JSON."""
    match answer:
        case "absent" | "foreign" | "broken":
            return Venv(answer)
    state = json.loads(answer)
    changed: dict[str, list[str]] = {}
    for folder in state["changed"]:
        changed.setdefault(name_of(folder), []).append(folder)
    return Venv(
        kind="whole",
        python=state["python"],
        implementation=state["implementation"],
        packages={name_of(folder): _version(folder) for folder in state["folders"]},
        changed=changed,
        config_changed=state["config_changed"],
        damaged=dict(state["tree"]["wrong"]),
        damaged_count=int(state["tree"]["count"]),
        basis=str(state["tree"]["basis"]),
    )


def damage(found: Venv, most: int = 3) -> list[str]:
    """What is damaged in it, for people: some files, and how many more."""
    lines = [f"{path}: {how}" for path, how in list(found.damaged.items())[:most]]
    more = found.damaged_count - len(lines)
    return [*lines, *([f"and {more} more"] if more > 0 else [])]


def state_command(path: str, *words: str) -> str:
    """The shell command that runs gpubox/remote/venv_state.py with the Python of the venv at `path`."""
    return payload.shell("venv_state", path, *words, python=f"{path}/bin/python", flags=payload.BARE)


def _look(path: str) -> StringCommand:
    """Exit codes of a Python that cannot start: 1 (its library is gone), 126, 127; any other is no answer."""
    venv, python = QuoteString(path), QuoteString(f"{path}/bin/python")
    return StringCommand(
        *("if [ ! -e", venv, "] && [ ! -L", venv, "]; then echo absent;"),
        *("elif [ ! -e", QuoteString(f"{path}/{MARKER}"), "]; then echo foreign; else"),
        *(python, "-I -S -c '' 2>/dev/null; case $? in 0)", state_command(path)),
        ";; 1|126|127) echo broken;; *) exit $?;; esac; fi",
    )


def _version(folder: str) -> str:
    return folder.removesuffix(".dist-info").partition("-")[2]
