"""The command line of a model server that runs, read as its release of SGLang reads it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpubox.catalog import release
from gpubox.catalog.release import Flag, Release
from gpubox.onboard.state import Server
from gpubox.remote.launchers import launch
from gpubox.settings.profile import FlagValue
from gpubox.support.errors import GpuboxError

_CONFIG = "config"


@dataclass(frozen=True)
class CommandLine:
    """What somebody asked SGLang for."""

    python_args: list[str]
    flags: dict[str, FlagValue]
    """In order; those of the file of `--config` first."""
    words: list[str]
    """The flags as words, as they stood on the command line."""
    notes: list[str]
    """What is not as it stood there."""


def read(server: Server, known: Release | None) -> CommandLine:
    """The server's command line. Errors: not SGLang's server of language models, a word that belongs to no flag, a file
    of flags that was not read.

    + known: the server's release; None: not in the catalogue, so names are taken as they are
    """
    # which program runs it was told on the machine; here only the words count
    started = launch(server.argv, server.folder, "python3")
    if started is None or started.engine != "sglang":
        shown = " ".join(server.argv[:5])
        raise GpuboxError(f"{shown} ... is not SGLang", "python -m sglang.launch_server, or sglang serve")
    if started.model_type not in {"", "auto", "llm"}:
        raise GpuboxError(f"--model-type {started.model_type}", "a server of language models", "--no-adopt")
    found, notes = flags(started.words)
    if _CONFIG in found and "--config" not in started.words:
        notes.append(f"--config={found.pop(_CONFIG)} left out: SGLang reads a file only from two words, and read none")
    found, more = _one_name_each(_with_file(found, server, known), known)
    return CommandLine(started.python_args, found, started.words, [*notes, *more])


def words(server: Server) -> list[str]:
    """The flags with their values, as they stand on the command line; empty: it is no server."""
    started = launch(server.argv, server.folder, "python3")
    return started.words if started else []


def flags(words: Iterable[str]) -> tuple[dict[str, FlagValue], list[str]]:
    """SGLang's flags out of a command line, in order, and what is lost. Error: a word that belongs to no flag."""
    found: dict[str, FlagValue] = {}
    notes: list[str] = []
    name = ""
    for word in words:
        if re.match(r"--[A-Za-z]", word):
            name, equals, value = word[2:].partition("=")
            if name in found:
                notes.append(f"--{name} stood twice: the last counts")
                del found[name]
            found[name] = _value(value) if equals else True
        elif not name:
            raise GpuboxError(f"the command line holds {word!r} before any flag", "only flags with their values")
        else:
            found[name] = _with(found[name], _value(word))
    return found, notes


def flag(found: Mapping[str, FlagValue], known: Release | None, name: str) -> FlagValue:
    """The value of SGLang's flag `name`, under whichever of its spellings it was given; None: it was not."""
    wanted = known.find(name) if known else None
    for given, value in found.items():
        if given == name or (wanted is not None and known is not None and known.find(given) is wanted):
            return value
    return None


def catalogued(version: str) -> Release | None:
    """A release of the catalogue; None: not in it."""
    return release.load(version) if version in release.versions() else None


def _with_file(found: dict[str, FlagValue], server: Server, known: Release | None) -> dict[str, FlagValue]:
    """The flags of the file that `--config` names, then those of the command line, which take their place."""
    if _CONFIG not in found:
        return found
    if server.config is None:
        raise GpuboxError(
            f"the server has --config {found[_CONFIG]}, and that file cannot be read as plain `name: value` lines",
            "all flags in the profile: no rule sees what the file says",
            "write its settings out as flags, start the server so, and run this again; or --no-adopt",
        )
    from_file: dict[str, FlagValue] = {}
    for name, value in server.config:
        taken = _of_file(value, known.find(name) if known else None)
        if taken is not False and flag(found, known, name) is None:
            from_file[name] = taken
    return {**from_file, **{name: value for name, value in found.items() if name != _CONFIG}}


def _of_file(value: Any, spec: Flag | None) -> FlagValue:
    """As SGLang makes words of a file (ConfigArgumentMerger): true of a bare flag is the flag, false is nothing; of a
    flag with a value they are the words true and false. False: left out."""
    if isinstance(value, bool):
        bare = spec is None or spec.type == "flag"
        return value if bare else str(value).lower()
    if isinstance(value, list):
        return [_value(str(item)) for item in value] or False
    return _value(str(value))


def _one_name_each(found: dict[str, FlagValue], known: Release | None) -> tuple[dict[str, FlagValue], list[str]]:
    """Of two spellings of one flag the last, as argparse takes it."""
    if known is None:
        return found, []
    kept: dict[str, FlagValue] = {}
    notes = []
    for name, value in found.items():
        spec = known.find(name)
        before = next((other for other in kept if spec is not None and known.find(other) is spec), None)
        if before is not None:
            notes.append(f"--{before} and --{name} are one flag: the last counts")
            del kept[before]
        kept[name] = value
    return kept, notes


def _with(before: FlagValue, value: str | int | float) -> FlagValue:
    if before is True:
        return value
    return [*before, value] if isinstance(before, list) else [before, value]  # type: ignore[list-item]  # a value: set above


def _value(word: str) -> str | int | float:
    """A number where its text comes back the same, so that the command line is the same word for word."""
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        if str(number) == word:
            return number
    return word
