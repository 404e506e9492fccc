"""What systemd really has of a unit, and what its process really is, against what a release asks for.

A unit's file is only one of the places that systemd reads (systemd.unit(5)): a file of the same name in a directory of
higher precedence, drop-ins in a dozen directories, `systemctl set-property`, and the manager's own environment all have
their say. Reads only; gpubox.remote.switch puts right what is the unit's own.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubox.remote import command, proc

HIGHER = (
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "run/systemd/generator.early",
)
"""Directories whose unit of the same name counts more than that of /etc/systemd/system."""
PLACES = (
    *HIGHER,
    "etc/systemd/system",
    "etc/systemd/system.attached",
    "run/systemd/system",
    "run/systemd/system.attached",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
    "run/systemd/generator.late",
)
"""All directories that systemd reads units and drop-ins from, highest first."""
COMPARED = (
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecCondition",
    "Environment",
    "EnvironmentFiles",
    "UnsetEnvironment",
    "PassEnvironment",
    "User",
    "Group",
    "DynamicUser",
    "RootDirectory",
    "RootImage",
    "WorkingDirectory",
    "Restart",
    "KillMode",
    "OOMPolicy",
    "LimitNOFILE",
    "LimitMEMLOCK",
)
"""Properties in which what is loaded must be what the unit's text says."""
STATE = ("LoadState", "MainPID", "ExecMainStartTimestampMonotonic", "DropInPaths", "Slice")
PROPERTIES = (*STATE, *COMPARED)
_WITH_DEFAULTS = {"WorkingDirectory", "Restart", "KillMode", "OOMPolicy", "LimitNOFILE", "LimitMEMLOCK"}
"""Of these: those that have a value of systemd's own where no unit asks."""
_COMMANDS = ("ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition")
_LIVE = re.compile(
    r"(CPU(Weight|Quota|QuotaPeriodSec|Accounting|Shares)|Startup\w+|Memory\w+|DefaultMemory\w+|Tasks\w+|IO\w+|BlockIO\w+"
    r"|IP\w+|Allowed(CPUs|MemoryNodes)|Device(Allow|Policy)|ManagedOOM\w+|Restart\w*|Timeout\w+|StartLimit\w+|OOMPolicy"
    r"|Kill\w+|SendSIG\w+|FinalKillSignal|SuccessExitStatus|ExecStop\w*|ExecReload|ExecStartPost|RuntimeMaxSec|Watchdog\w+"
    r"|Log\w+|Syslog\w+)$"
)
"""Settings of [Service] that systemd applies without a restart, or that say nothing of the process that runs."""
_LIMITING = re.compile(
    r"(CPUQuota|Memory(Max|High|SwapMax|Limit)|TasksMax|Allowed(CPUs|MemoryNodes)|IO\w+Max|Device\w+)$"
)
"""Settings of a slice that bound every service in it."""
_WHO = {
    "DynamicUser",
    "EnvironmentFile",
    "Group",
    "PassEnvironment",
    "RootDirectory",
    "RootImage",
    "UnsetEnvironment",
    "User",
}
"""Settings that say as whom, where and with what a process runs."""
_SYSTEMDS = re.compile(
    r"(PATH|LANG|LANGUAGE|LC_\w+|HOME|LOGNAME|USER|SHELL|TERM|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_\w+|NOTIFY_SOCKET"
    r"|MAINPID|MANAGERPID|WATCHDOG_\w+|LISTEN_\w+|MEMORY_PRESSURE_\w+|container|container_\w+|RUNTIME_DIRECTORY"
    r"|STATE_DIRECTORY|CACHE_DIRECTORY|LOGS_DIRECTORY|CONFIGURATION_DIRECTORY|CREDENTIALS_DIRECTORY)$"
)
"""Variables that systemd or the container's manager gives every service."""
_TITLE = "sglang::"
"""How SGLang's processes call themselves once they change their title; until then it is the command line."""


@dataclass(frozen=True)
class Asked:
    """What a release asks for."""

    unit: str
    """Text of its unit."""
    argv: list[str]
    """The command line of its process; empty: the release does not say."""
    environment: str
    """Text of its EnvironmentFile."""


@dataclass(frozen=True)
class Effective:
    """What is there beside or instead of the unit that was asked for."""

    aside: list[dict[str, Any]] = field(default_factory=list)
    """Files that are meant for this unit alone and are not of the release: each with `path`, `sets` (names) and
    `restart` (whether the process was started with something out of it)."""
    shared: list[dict[str, Any]] = field(default_factory=list)
    """Files for many units that change this one: `path`, `sets`, `severe` (it goes against what the release asks)."""
    differs: list[str] = field(default_factory=list)
    """Properties that systemd has loaded otherwise than the release asks: `ExecStart is ..., not ...`."""
    process: str | None = None
    """Why the main process is not the one asked for; None: it is, or there is none."""
    manager: list[str] = field(default_factory=list)
    """Names of variables that systemd's own environment gives every service, and nobody asked for here."""
    extra: list[str] = field(default_factory=list)
    """Names of variables that only the process has."""


def look(unit: str, asked: Asked, units: Path, root: Path = Path("/"), processes: Path = proc.PROC) -> Effective:
    """Compare. Error: CommandError when systemctl cannot be run.

    + units: where the unit's own file lies, as /etc/systemd/system
    + root: below it lie systemd's other directories
    """
    shown = show(["show", unit, "--no-pager", "--property=" + ",".join(PROPERTIES)])
    manager = show(["show", "--no-pager", "--property=Environment"]).get("Environment", "")
    process = processes / shown.get("MainPID", "0")
    settings = read_unit(asked.unit)
    places = [units if place == "etc/systemd/system" else root / place for place in PLACES]
    given = sorted(name for name in _variables(manager) if not _SYSTEMDS.match(name))
    return Effective(
        aside=_own(unit, shown, places),
        shared=[*_types(unit, settings, places), *_slices(shown.get("Slice", ""), places)],
        differs=differences(settings, shown) if shown.get("LoadState") == "loaded" else [],
        process=not_asked_for(process, asked),
        manager=[name for name in given if name not in environment(asked.environment)],
        extra=_extra(process, asked, given),
    )


def show(words: list[str]) -> dict[str, str]:
    """Properties as `systemctl show` prints them; one that comes several times: its values, a line each."""
    found: dict[str, str] = {}
    name = ""
    for line in command.output(["systemctl", *words]).splitlines():
        key, equals, value = line.partition("=")
        if equals and key in PROPERTIES:
            name = key
            found[name] = f"{found[name]}\n{value}" if name in found else value
        elif name in _COMMANDS:  # a value with a newline, as the command line of a shell's script
            found[name] += f"\n{line}"
    return found


def read_unit(text: str) -> list[tuple[str, str, str]]:
    """(section, name, value) in order, as systemd.syntax(7) has it: comments go, a backslash joins lines."""
    found, section, held = [], "", ""
    for line in text.splitlines():
        if line.lstrip()[:1] in {"#", ";"}:
            continue
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole, held = (held + line).strip(), ""
        name, equals, value = whole.partition("=")
        if whole.startswith("["):
            section = whole.strip("[]")
        elif equals:
            found.append((section, name.strip(), value.strip()))
    return found


def environment(text: str) -> dict[str, str]:
    """The variables of an EnvironmentFile that gpubox.server.systemd wrote: NAME="value" a line."""
    pairs = re.findall(r'^([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"$', text, flags=re.M | re.S)
    return {name: re.sub(r"\\(.)", r"\1", value, flags=re.S) for name, value in pairs}


def differences(settings: list[tuple[str, str, str]], shown: dict[str, str]) -> list[str]:
    """What systemd has loaded otherwise than the unit's text says; of what this systemd does not know, nothing."""
    asked: dict[str, list[str]] = {}
    for _, name, value in settings:
        asked.setdefault({"EnvironmentFile": "EnvironmentFiles"}.get(name, name), []).append(value)
    found = []
    for name in COMPARED:
        wanted = asked.get(name, [])
        if name in _WITH_DEFAULTS and not (wanted and name in shown):
            continue
        now, right = _both(name, wanted, shown.get(name, ""))
        if now != right:
            found.append(f"{name} is {_brief(shown.get(name, ''))}, not {_brief(' '.join(wanted))}")
    return found


def _both(name: str, wanted: list[str], shown: str) -> tuple[list[str], list[str]]:
    """What is loaded and what is asked for, in one form that can be compared."""
    if name in _COMMANDS:
        now = re.findall(r"argv\[\]=(.*?) ; ignore_errors=", shown, re.S)
        right = [re.sub(r"\\(.)", _unescaped, value.replace("%%", "%")) for value in wanted]
    elif name == "EnvironmentFiles":
        now = [line.rpartition(" (")[0] for line in shown.splitlines()]
        right = [value.lstrip("-") for value in wanted]
    else:
        several = name in {"Environment", "UnsetEnvironment", "PassEnvironment"}
        now = [shown.replace("\n", " ")]
        right = [" ".join(wanted if several else wanted[-1:]) or ("no" if name == "DynamicUser" and shown else "")]
    return [_loose(text) for text in now], [_loose(text) for text in right]


def not_asked_for(process: Path, asked: Asked) -> str | None:
    """Why a process is not the one that a release asks for; None: it is, or it is gone."""
    words, now = proc.words(process), proc.variables(process)
    if not asked.argv or not words or not now:
        return None
    if words != asked.argv and not words[0].startswith(_TITLE):
        return f"its command line is {_brief(shlex.join(words))}"
    program, runs = asked.argv[0], proc.link(process, "exe").replace(" (deleted)", "")
    if runs and Path(program).exists() and runs != os.path.realpath(program):
        return f"its program is {runs}, not {program}"
    user = _user(process)
    if user not in {None, os.getuid()}:
        return f"it runs as user {user}, not {os.getuid()}"
    wrong = sorted(name for name, value in environment(asked.environment).items() if now.get(name) != value)
    return f"its environment has another {', '.join(wrong)}" if wrong else None


def _extra(process: Path, asked: Asked, given: list[str]) -> list[str]:
    unit = [value for _, name, value in read_unit(asked.unit) if name == "Environment"]
    known = {*environment(asked.environment), *_variables("\n".join(unit)), *given}
    return sorted(name for name in proc.variables(process) if name not in known and not _SYSTEMDS.match(name))


def _variables(text: str) -> list[str]:
    """Names out of NAME=value words."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [word.partition("=")[0].lstrip("$'") for word in words if "=" in word]


def _user(process: Path) -> int | None:
    found = re.search(r"^Uid:\s+\d+\s+(\d+)", proc.text(process, "status"), re.M)
    return int(found.group(1)) if found else None


def _own(unit: str, shown: dict[str, str], places: list[Path]) -> list[dict[str, Any]]:
    """What lies anywhere for this unit alone, or that systemd has loaded for it from elsewhere."""
    began_s = _began(shown)
    paths = [place / unit for place in places[: len(HIGHER)] if os.path.lexists(place / unit)]
    for place in places:
        paths += sorted((place / f"{unit}.d").glob("*.conf"))
    types = {f"{name}.d" for name in type_names(unit)}
    loaded = [Path(path) for path in shown.get("DropInPaths", "").split()]
    paths += [path for path in loaded if path.parent.name not in types and path.exists()]
    masked: set[str] = set()
    found: dict[Path, dict[str, Any]] = {}
    for path in paths:
        real = path.parent.resolve() / path.name
        if os.path.realpath(path) == os.devnull:
            masked.add(path.name)
        elif real not in found and path.name not in masked:
            found[real] = {"path": str(path), **_sets(path, began_s)}
    return list(found.values())


def _sets(path: Path, began_s: float | None) -> dict[str, Any]:
    """What a file sets, and whether the process that runs was started with it and would have to be started again."""
    settings = read_unit(_text(path))
    lasting = [name for section, name, _ in settings if section == "Service" and not _LIVE.match(name)]
    applied = began_s is None or path.lstat().st_ctime <= began_s
    return {"sets": sorted({name for _, name, _ in settings}), "restart": bool(lasting) and applied}


def type_names(unit: str) -> list[str]:
    """Names whose drop-ins count for a unit besides its own: `a-b.service` has `a-.service` and `service`."""
    name, _, kind = unit.rpartition(".")
    parts = name.split("-")
    prefixes = ["-".join(parts[:count]) + "-" for count in range(len(parts) - 1, 0, -1)]
    return [*(f"{prefix}.{kind}" for prefix in prefixes), kind]


def _types(unit: str, settings: list[tuple[str, str, str]], places: list[Path]) -> list[dict[str, Any]]:
    """Drop-ins for all services (or all whose names begin alike) that change what this one asks for."""
    asked = {name for _, name, _ in settings} - {"Environment", "Description", "After", "Wants", "WantedBy"}
    against = asked | _WHO | set(_COMMANDS)
    found = []
    for kind in type_names(unit):
        for path in _drop_ins(kind, places):
            sets = {name for _, name, _ in read_unit(_text(path))}
            told = sets & (against | {"Environment"})
            if told:
                found.append({"path": str(path), "sets": sorted(told), "severe": bool(sets & against)})
    return found


def _slices(name: str, places: list[Path]) -> list[dict[str, Any]]:
    """What bounds the slice that the service is in, and the one above all."""
    found = []
    for path in (path for one in {name, "-.slice"} if one for path in _drop_ins(one, places)):
        sets = sorted({key for _, key, _ in read_unit(_text(path)) if _LIMITING.match(key)})
        if sets:
            found.append({"path": str(path), "sets": sets, "severe": False})
    return found


def _drop_ins(name: str, places: list[Path]) -> list[Path]:
    """Drop-ins that count: of two of the same name, the one in the higher place."""
    found: dict[str, Path] = {}
    for place in places:
        for path in sorted((place / f"{name}.d").glob("*.conf")):
            found.setdefault(path.name, path)
    return list(found.values())


def _began(shown: dict[str, str]) -> float | None:
    """When the main process was started, in seconds since the epoch; None: not told."""
    at = shown.get("ExecMainStartTimestampMonotonic", "0")
    if not at.isdigit() or at == "0":
        return None
    return time.time() - time.monotonic() + int(at) / 1e6


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r", "t": "\t"}.get(found.group(1), found.group(1))


def _loose(text: str) -> str:
    """Without quotes, backslashes and white space: releases of systemd show them differently."""
    return re.sub(r"[\s\"'\\]+", "", text)


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return (text if len(text) <= 160 else text[:157] + "...") or "nothing"
