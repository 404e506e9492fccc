"""A model server that somebody started by hand as a profile: the same flags, the same environment, secrets apart."""

import json
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpubox.catalog import cards as catalogue_cards
from gpubox.catalog import models
from gpubox.catalog.release import Release
from gpubox.onboard import command_line
from gpubox.onboard.command_line import CommandLine, flags
from gpubox.onboard.state import Server
from gpubox.remote import secrets
from gpubox.server import command, jit, parallel
from gpubox.settings import stack
from gpubox.settings.profile import FlagValue, settings_digest
from gpubox.settings.stack import Stack
from gpubox.support.errors import GpuboxError
from gpubox.support.versions import key

__all__ = ["Adopted", "adopt", "flags", "profile_text"]

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_ROOTS_CACHE = "/root/.cache/huggingface/hub"
_OTHER_TORCH = ("rocm", "xpu", "hpu")
"""In torch's local version: a build for cards of others than NVIDIA."""
_OTHER_BACKENDS = {"ascend": "Ascend NPUs", "intel_xpu": "Intel GPUs", "aiter": "AMD GPUs", "wave": "AMD GPUs"}


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
    ran: str = ""
    """Release that it ran on; empty: changed sources, or not found."""
    process: dict[str, Any] = field(default_factory=dict)
    """What binds it, for the profile's `process`."""
    pid: int = 0
    """Its process, to fetch its secrets from."""

    @property
    def cards(self) -> int:
        """Cards that it uses on its machine."""
        known = command_line.catalogued(self.ran) or command_line.catalogued(self.stack.sglang)

        def size(name: str) -> int:
            value = command_line.flag(self.flags, known, name)
            return value if isinstance(value, int) and value is not True and value > 0 else 1

        tp = max(size("tp-size"), size("tp"))  # the latter where no release is known to abbreviate it
        attention = command_line.flag(self.flags, known, "enable-dp-attention") is True
        return parallel.cards(tp, size("pp-size"), size("dp-size"), size("nnodes"), attention)


def adopt(server: Server, stack_name: str | None = None) -> Adopted:
    """The server's settings. Errors: not SGLang on NVIDIA cards, a command line that is no list of flags, paths seen
    from its folder, no stack for its release.

    + stack_name: the stack to put it on; None: one of its own release and device
    """
    known = command_line.catalogued(server.sglang)
    _refuse_key_beside_file(server)
    line = command_line.read(server, known)
    _refuse_relative(server, line)
    _refuse_other_devices(server, line)
    found, api_key, lost = _without_secrets(server, line.flags)
    chosen = stack.load(stack_name) if stack_name else _stack(server, found)
    variables, dropped = _environment(server, chosen)
    notes = [
        *line.notes,
        *_about_variables(server, lost),
        *([f"it ran as {server.user}; the service runs as root"] if server.user != "root" else []),
        *_about_release(server, chosen, found),
        *_about_nodes(found, known),
        *dropped,
        *_about_process(server),
    ]
    cached = server.cache == _ROOTS_CACHE or variables.keys() & {"HF_HOME", "HF_HUB_CACHE"}
    return Adopted(
        stack=chosen,
        flags=found,
        environment=variables,
        python_args=line.python_args,
        revision=server.revision,
        api_key=api_key,
        hub_token=next((name for name in _TOKENS if name in server.secret_variables), ""),
        hub_cache="" if cached else server.cache,
        notes=notes,
        ran="" if server.source else server.sglang,
        process={name: value for name, value in server.process.items() if name != "told"},
        pid=server.pid,
    )


def profile_text(adopted: Adopted, summary: str, purpose: str, now: str, cards: Sequence[str] = ()) -> str:
    """The profile as YAML, in the order and style of those that people write.

    + cards: names of the machine's cards, as nvidia-smi prints them
    + now: when it was adopted, as 2026-11-29
    """
    head: dict[str, Any] = {"summary": summary, "stack": adopted.stack.name, "purpose": purpose}
    known = {"catalog": _catalogue_key(adopted.flags), "revision": adopted.revision}
    if model := {name: value for name, value in known.items() if value}:
        head["model"] = model
    if adopted.stack.device == "cuda" and (kind := _card_key(_visible(cards, adopted.environment))):
        head["cards"] = {"model": kind, "count": adopted.cards}
    digest = settings_digest(adopted.flags, adopted.environment, adopted.python_args)
    head["adopted"] = {"sglang": adopted.ran, "settings": digest}
    lines = [f"# Adopted on {now} from a server that was running: its flags and environment, as they were."]
    lines += [f"{name}: {_yaml(value)}" for name, value in head.items()]
    tables: dict[str, dict[str, Any]] = {
        "flags": {**adopted.flags},
        "environment": {**adopted.environment},
        "process": adopted.process,
    }
    for name, values in tables.items():
        if values:
            lines += [f"{name}:", *(f"  {each}: {_yaml(value)}" for each, value in values.items())]
    if adopted.python_args:
        lines.append(f"python_args: {_yaml(adopted.python_args)}")
    if adopted.notes:
        lines += ["notes:", *(f"  - {_yaml(note)}" for note in adopted.notes)]
    return "\n".join([*lines, ""])


def _refuse_key_beside_file(server: Server) -> None:
    if "--config" in server.argv and server.config is None and "api-key" in server.secret_flags:
        raise GpuboxError(
            "the server has --api-key and --config", "one of them", "put the key into no file but gpubox's own"
        )
    in_file = [name for name, value in server.config or [] if secrets.MASK in str(value)]
    if in_file:
        raise GpuboxError(
            f"the file of --config holds a secret: {', '.join(in_file)}",
            "no secret in a file of flags: SGLang logs it",
            "give the key with --api-key for now: gpubox takes it over into a file of its own; or --no-adopt",
        )


def _refuse_relative(server: Server, line: CommandLine) -> None:
    """The interpreter's own path does not count: the service has its own."""
    elsewhere = {word for word in server.argv if word not in line.words}
    relative = [word for word in server.relative if word not in elsewhere]
    if relative:
        raise GpuboxError(
            f"the command line holds paths seen from {server.folder}: {', '.join(relative)}",
            "whole paths: the service starts elsewhere",
            "start it with whole paths and run this again, or --no-adopt",
        )


def _refuse_other_devices(server: Server, line: CommandLine) -> None:
    device = command_line.flag(line.flags, command_line.catalogued(server.sglang), "device")
    backends = {name: str(value) for name, value in line.flags.items() if name.endswith("-backend")}
    other = next((name for name, value in backends.items() if value in _OTHER_BACKENDS), "")
    build = next((name for name in _OTHER_TORCH if name in server.torch.partition("+")[2]), "")
    if device not in {None, "cuda", "cpu"}:
        found = f"--device {device}"
    elif other:
        found = f"--{other} {backends[other]}, which is for {_OTHER_BACKENDS[backends[other]]}"
    elif build:
        found = f"torch {server.torch}, a build for {build}"
    else:
        return
    raise GpuboxError(f"the server has {found}", "a server on NVIDIA cards: gpubox has no other stacks", "--no-adopt")


def _without_secrets(server: Server, given: dict[str, FlagValue]) -> tuple[dict[str, FlagValue], bool, list[str]]:
    """The flags without those that hold secrets; whether the key of the API is one; the others."""
    found = {name: value for name, value in given.items() if secrets.MASK not in str(value)}
    others = [f"--{name}" for name in server.secret_flags if name != "api-key"]
    return found, "api-key" in server.secret_flags, others


def _environment(server: Server, chosen: Stack) -> tuple[dict[str, str], list[str]]:
    """The variables for the profile, and what is said of those that are left out."""
    given = server.environment
    code = [f"{name}={given[name]}" for name in given if command.changes_code(name)]
    caches = [name for name in given if name in jit.VARIABLES]
    notes = []
    if code:
        notes.append(f"left out, as it puts other code before that of the stack: {', '.join(code)}")
    if caches:
        notes.append(f"left out, as gpubox keeps compiled kernels for each venv by itself: {', '.join(caches)}")
    home = given.get("CUDA_HOME")
    if home and home != chosen.cuda_home_path:
        notes.append(f"CUDA_HOME {home} becomes {chosen.cuda_home_path}, the toolkit of the stack {chosen.name}")
    left_out = {*command.RESERVED, *jit.VARIABLES}
    kept = {name: given[name] for name in given if name not in left_out and not command.changes_code(name)}
    for name in [name for name, value in kept.items() if value.startswith(("./", "../"))]:
        whole = posixpath.normpath(f"{server.folder}/{kept[name]}")
        notes.append(f"{name}={kept[name]} becomes {whole}: the service starts elsewhere")
        kept[name] = whole
    return kept, notes


def _about_variables(server: Server, lost: list[str]) -> list[str]:
    notes = []
    secret = lost + [name for name in server.secret_variables if name not in _TOKENS]
    if server.common_variables:
        notes.append(f"left out, as every login there has them: {', '.join(server.common_variables)}")
    if secret:
        notes.append(f"secret, with no place in gpubox, left out: {', '.join(secret)}")
    if server.empty_variables:
        notes.append(f"left out, as they are empty: {', '.join(server.empty_variables)}")
    return notes


def _about_release(server: Server, chosen: Stack, found: dict[str, FlagValue]) -> list[str]:
    notes = []
    if server.source:
        notes.append(f"it ran from sources in {server.source}; the service runs SGLang {chosen.sglang} as released")
    if server.sglang and chosen.sglang != server.sglang:
        notes.append(f"SGLang {server.sglang} becomes {chosen.sglang}: `gpubox check` says which flags were renamed")
    known = command_line.catalogued(chosen.sglang)
    unknown = [f"--{name}" for name in found if known and known.find(name) is None]
    if unknown and chosen.sglang == server.sglang:
        names = ", ".join(unknown)
        notes.append(f"no flags of SGLang {chosen.sglang} as released: {names}; `gpubox check` says what to do")
    return notes


def _about_nodes(found: dict[str, FlagValue], known: Release | None) -> list[str]:
    nodes = command_line.flag(found, known, "nnodes")
    if nodes in {None, 1}:
        return []
    rank = command_line.flag(found, known, "node-rank") or 0
    silent = "" if rank == 0 else "; only node 0 answers clients, so no deploy will find this part ready"
    return [f"node {rank} of {nodes} of one server: gpubox starts this part alone, the others are yours{silent}"]


def _about_process(server: Server) -> list[str]:
    told = server.process.get("told", [])
    return [f"not taken over, as systemd has no words for it: {what}" for what in told]


def _catalogue_key(found: dict[str, FlagValue]) -> str:
    """The catalogue's key of the model, by its hub name or the last part of its path; empty: none is like it."""
    path = str(found.get("model-path", found.get("model", "")))
    last = path.rstrip("/").rpartition("/")[2].lower()
    for name, facts in models().items():
        alike = path.startswith("/") and last in {name, *(hub.rpartition("/")[2].lower() for hub in facts.hub)}
        if path in facts.hub or alike:
            return name
    return ""


def _visible(names: Sequence[str], environment: dict[str, str]) -> Sequence[str]:
    """The cards that the server sees, where it names them by their numbers."""
    numbers = [part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    if numbers and all(number.isdigit() and int(number) < len(names) for number in numbers):
        return [names[int(number)] for number in numbers]
    return names


def _card_key(names: Sequence[str]) -> str:
    """The catalogue's key of the cards; empty: of several kinds, or unknown."""
    kinds = [name for name, card in catalogue_cards().items() if {*names} <= {card.name, *card.aliases}]
    return kinds[0] if names and kinds else ""


def _stack(server: Server, found: dict[str, FlagValue]) -> Stack:
    known_release = command_line.catalogued(server.sglang)
    on_cpu = command_line.flag(found, known_release, "device") == "cpu" or server.torch.endswith("+cpu")
    device = "cpu" if on_cpu else "cuda"
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
