"""A model server that somebody started by hand as a profile: the same flags, the same environment, secrets apart."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpubox.catalog import cards as catalogue_cards
from gpubox.catalog import models
from gpubox.onboard.state import Server
from gpubox.remote import secrets
from gpubox.settings import stack
from gpubox.settings.profile import FlagValue
from gpubox.settings.stack import Stack
from gpubox.support.errors import GpuboxError
from gpubox.support.versions import key

_OURS = ("CUDA_HOME", "CUDA_PATH")
"""What gpubox sets itself, from the stack."""
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_LAUNCHERS = ("sglang.launch_server",)
_ROOTS_CACHE = "/root/.cache/huggingface/hub"


@dataclass(frozen=True)
class Adopted:
    """What becomes of a server that runs."""

    stack: Stack
    flags: dict[str, FlagValue]
    environment: dict[str, str]
    python_args: list[str]
    revision: str
    """Commit of the hub's model; empty: it lies at a path, or its commit was not found."""
    api_key: bool
    """It asks for a key, which is on its command line now."""
    hub_token: str
    """Variable that holds a token of the hub; empty: none."""
    hub_cache: str = ""
    """The hub's cache that holds the model; empty: root's own, or the environment names it."""
    notes: list[str] = field(default_factory=list)
    """What will not be as it is now."""


def adopt(server: Server, stack_name: str | None = None) -> Adopted:
    """The server's settings. Errors: not SGLang, a command line that is no list of flags, no stack for its release.

    + stack_name: the stack to put it on; None: one of its own release and device
    """
    python_args, words = _split(server.argv)
    found, notes = flags(words)
    api_key = "api-key" in server.secret_flags
    for name in [name for name, value in found.items() if secrets.MASK in str(value)]:
        del found[name]
    others = [flag for flag in server.secret_flags if flag != "api-key"]
    token = next((name for name in _TOKENS if name in server.secret_variables), "")
    lost = [f"--{flag}" for flag in others] + [name for name in server.secret_variables if name not in _TOKENS]
    if server.common_variables:
        notes.append(f"left out, as every login there has them: {', '.join(server.common_variables)}")
    if lost:
        notes.append(f"secret, with no place in gpubox, left out: {', '.join(lost)}")
    if server.empty_variables:
        notes.append(f"left out, as they are empty: {', '.join(server.empty_variables)}")
    if server.user != "root":
        notes.append(f"it ran as {server.user}; the service runs as root")
    if server.relative:
        raise GpuboxError(
            f"the command line holds paths seen from {server.folder}: {', '.join(server.relative)}",
            "whole paths: the service starts elsewhere",
            "start it with whole paths and run this again, or --no-adopt",
        )
    if api_key and "config" in found:
        raise GpuboxError(
            "the server has --api-key and --config", "one of them", "put the key into no file but gpubox's own"
        )
    chosen = stack.load(stack_name) if stack_name else _stack(server, found)
    if server.sglang and chosen.sglang != server.sglang:
        notes.append(f"SGLang {server.sglang} becomes {chosen.sglang}: `gpubox check` says which flags were renamed")
    dropped = [name for name in _OURS if name in server.environment]
    home = server.environment.get("CUDA_HOME")
    if home and home != chosen.cuda_home_path:
        notes.append(f"CUDA_HOME {home} becomes {chosen.cuda_home_path}, the toolkit of the stack {chosen.name}")
    variables = {name: value for name, value in server.environment.items() if name not in dropped}
    cache = "" if server.cache == _ROOTS_CACHE or variables.keys() & {"HF_HOME", "HF_HUB_CACHE"} else server.cache
    return Adopted(chosen, found, variables, python_args, server.revision, api_key, token, cache, notes)


def flags(words: list[str]) -> tuple[dict[str, FlagValue], list[str]]:
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


def profile_text(adopted: Adopted, summary: str, purpose: str, now: str, cards: Sequence[str] = ()) -> str:
    """The profile as YAML, in the order and style of those that people write.

    + cards: names of the machine's cards, as nvidia-smi prints them
    + now: when it was adopted, as 2026-11-29
    """
    head: dict[str, Any] = {"summary": summary, "stack": adopted.stack.name, "purpose": purpose}
    known = {"catalog": _catalogue_key(adopted.flags), "revision": adopted.revision}
    if model := {name: value for name, value in known.items() if value}:
        head["model"] = model
    if adopted.stack.device == "cuda" and (kind := _card_key(cards)):
        head["cards"] = {"model": kind, "count": _used(adopted.flags)}
    lines = [f"# Adopted on {now} from a server that was running: its flags and environment, as they were."]
    lines += [f"{name}: {_yaml(value)}" for name, value in head.items()]
    tables: dict[str, dict[str, Any]] = {"flags": {**adopted.flags}, "environment": {**adopted.environment}}
    for name, values in tables.items():
        if values:
            lines += [f"{name}:", *(f"  {each}: {_yaml(value)}" for each, value in values.items())]
    if adopted.python_args:
        lines.append(f"python_args: {_yaml(adopted.python_args)}")
    if adopted.notes:
        lines += ["notes:", *(f"  - {_yaml(note)}" for note in adopted.notes)]
    return "\n".join([*lines, ""])


def _catalogue_key(found: dict[str, FlagValue]) -> str:
    """The catalogue's key of the model, by its hub name or the last part of its path; empty: none is like it."""
    path = str(found.get("model-path", found.get("model", "")))
    last = path.rstrip("/").rpartition("/")[2].lower()
    for name, facts in models().items():
        if path in facts.hub or last in {name, *(hub.rpartition("/")[2].lower() for hub in facts.hub)}:
            return name
    return ""


def _card_key(names: Sequence[str]) -> str:
    """The catalogue's key of the cards; empty: of several kinds, or unknown."""
    kinds = [name for name, card in catalogue_cards().items() if {*names} <= {card.name, *card.aliases}]
    return kinds[0] if names and kinds else ""


def _used(found: dict[str, FlagValue]) -> int:
    """Cards that the flags use."""
    sizes = [found.get(name) for name in ("tp-size", "tensor-parallel-size", "tp")]
    return next((size for size in sizes if isinstance(size, int) and size is not True), 1)


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """The interpreter's own arguments, and what stands after the launcher."""
    if "-m" in argv and argv[argv.index("-m") + 1 :][:1] and argv[argv.index("-m") + 1] in _LAUNCHERS:
        at = argv.index("-m")
        return argv[1:at], argv[at + 2 :]
    at = argv.index("serve", 2) if "serve" in argv[2:] else 0
    if at and argv[at - 1].rpartition("/")[2] == "sglang":
        words = argv[at + 1 :]
        named = ["--model-path"] if words and not words[0].startswith("-") else []  # `sglang serve MODEL`
        return argv[1 : at - 1], [*named, *words]
    raise GpuboxError(f"{' '.join(argv[:5])} ... is not SGLang", "python -m sglang.launch_server, or sglang serve")


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


def _stack(server: Server, found: dict[str, FlagValue]) -> Stack:
    device = "cpu" if found.get("device") == "cpu" or server.torch.endswith("+cpu") else "cuda"
    stacks = [stack.load(name) for name in stack.names()]
    fitting = [one for one in stacks if one.device == device]
    same = [one for one in fitting if one.sglang == server.sglang]
    if same:
        return same[0]
    known = ", ".join(f"{one.name}" for one in sorted(fitting, key=lambda one: key(one.sglang), reverse=True))
    raise GpuboxError(
        f"no stack for SGLang {server.sglang or '(release not found)'} on {device}",
        f"one of: {known}",
        "--stack NAME moves the server to that release; or make one: stacks/NAME/, then `gpubox lock NAME`",
    )


def _yaml(value: object) -> str:
    """One value on one line."""
    if isinstance(value, str) and yaml.safe_dump(value)[:1] in "'\"":
        return json.dumps(value, ensure_ascii=False)
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...").strip()
