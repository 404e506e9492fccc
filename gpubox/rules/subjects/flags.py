"""Flags and their values, against what the pinned SGLang accepts."""

import difflib
import json
import re
from collections.abc import Iterator
from functools import partial

from gpubox.catalog import release
from gpubox.catalog.release import Flag
from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule
from gpubox.server import command, systemd
from gpubox.settings.profile import FlagValue
from gpubox.support.errors import GpuboxError

_WHEELS = "read in the wheel of the release (gpubox/catalog/releases)"
_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
_HUMAN = re.compile(r"-?\d+(\.\d+)?(Ki|Mi|Gi|Ti|k|M|G|T)?")
_AT_LEAST_ONE = (
    *("tp-size", "pp-size", "dp-size", "ep-size", "nnodes"),
    *("max-running-requests", "max-total-tokens", "context-length", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"),
)
_RANGES = {
    **dict.fromkeys(_AT_LEAST_ONE, (1, float("inf"))),
    "port": (1, 65535),
    "mem-fraction-static": (0.01, 0.99),
}
"""Smallest and largest number that a server can start with; argparse takes any."""


@rule("flag-unknown", "error", "Every flag exists in the pinned SGLang.", _WHEELS, needs=("release",))
def unknown(c: Context) -> Iterator[Told]:
    """Also an abbreviation that means several flags, and a flag that is gone, with what took its place."""
    for name in c.profile.flags:
        found = c.spec(name)
        if found is not None and not found.removed:
            continue
        near = c.release.abbreviated(name)
        if found is None and len(near) > 1 and not _releases_with(name):
            yield Told(f"--{name} abbreviates {_list(near)}", "a flag's full name", "write it out")
            continue
        yield _gone(c, name, found)


@rule("flag-deprecated", "warning", "No flag is on its way out.", _WHEELS, needs=("release",))
def deprecated(c: Context) -> Iterator[Told]:
    """SGLang still takes it, and says so in its log."""
    for name in c.profile.flags:
        found = c.spec(name)
        if found and found.deprecated and not found.removed:
            own = found.replacement or ""
            new = own if _has_all(c, own) else "see its documentation"
            yield Told(f"--{name} is deprecated in SGLang {c.release.sglang}", f"instead: {new}", f"use {new}")


@rule("flag-value", "error", "Every value is one that its flag takes.", _WHEELS, needs=("release",))
def value(c: Context) -> Iterator[Told]:
    """Type, number of values, and choices, as argparse would judge them after a start of minutes."""
    for name, given in c.profile.flags.items():
        found = c.spec(name)
        if found is None or given is None or given is False:
            continue
        if (problem := _problem(found, given)) is not None:
            yield Told(f"--{name} {_shown(given)}: {problem}", _wanted(found), _elsewhere(c, found, given))


@rule(
    "unit-text",
    "error",
    "Every word can stand in a unit of systemd.",
    "https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html",
)
def unit_text(c: Context) -> Iterator[Told]:
    """No control characters, which YAML writes as \\0 or \\e between double quotes."""
    words = [*c.profile.python_args, *command.flags(c.profile.flags)]
    renderings = [partial(systemd.exec_line, ["/", word]) for word in words]
    values = [value for value in c.environment.values() if value]
    for render in [*renderings, *(partial(systemd.environment_file, {"X": value}) for value in values)]:
        try:
            render()
        except GpuboxError as error:
            yield Told(error.found, error.needed, "take them out")


@rule("flag-twice", "error", "No flag is given under two names.", _WHEELS, needs=("release",))
def twice(c: Context) -> Iterator[Told]:
    """The last one would win in silence."""
    seen: dict[int, str] = {}
    for name in c.profile.flags:
        found = c.spec(name)
        if found is None:
            continue
        if id(found) in seen:
            yield Told(f"--{seen[id(found)]} and --{name} are one flag", "one of them", "take the other out")
        seen[id(found)] = name


@rule("flag-missing", "error", "Flags that SGLang insists on are given.", _WHEELS, needs=("release",))
def missing(c: Context) -> Iterator[Told]:
    """Today that is the model alone."""
    given = {id(c.spec(name)) for name in c.profile.flags}
    for flag in c.release.flags.values():
        if flag.required and id(flag) not in given:
            yield Told(f"--{flag.names[0]} is not given", "a value", "add it to the profile's flags")


@rule(
    "flag-config",
    "error",
    "No settings hide in a file that --config names.",
    "read in the wheel 0.5.23: the command line beats the file, and a second --config is not read",
)
def config(c: Context) -> Iterator[Told]:
    """No rule sees them, and gpubox gives the API key by a --config of its own."""
    if c.profile.flags.get("config"):
        yield Told(
            f"--config {c.profile.flags['config']}", "all flags in the profile", "write its settings out as flags"
        )


def _gone(c: Context, name: str, found: Flag | None) -> Told:
    plain = name.strip().lstrip("-").replace("_", "-").lower()
    if plain != name and plain in c.release.spellings:
        return Told(f"{name!r} is no name of a flag", "SGLang's name without its dashes", f"write it as {plain}")
    own = found.replacement if found else None
    new = own if own and _has_all(c, own) else _replacement(c, name)
    others = _releases_with(name)
    if not others:
        near = difflib.get_close_matches(name, c.release.spellings, 3, 0.6)
        hint = f"did you mean {_list(near)}?" if near else "take it out"
        return Told(f"--{name} is no flag of SGLang {c.release.sglang}, nor of any release of the catalogue", "", hint)
    span = others[0] if len(others) == 1 else f"{others[0]} to {others[-1]}"
    text = f"--{name} is not in SGLang {c.release.sglang} (it is in {span})"
    near = [one for one in difflib.get_close_matches(name, c.release.spellings, 3, 0.6) if _is_there(c, one)]
    todo = f"use {new}" if new else f"take it out, or perhaps {_list(near)}" if near else "take it out"
    return Told(text, "a flag of the pinned release", todo)


def _releases_with(name: str) -> list[str]:
    known = ((version, release.load(version)) for version in release.versions())
    return [v for v, r in known if name in r.spellings and (flag := r.find(name)) and not flag.removed]


def _replacement(c: Context, name: str) -> str | None:
    """What the newest release that deprecated the flag said to use, if the pinned one has all that it names."""
    for version in reversed(release.versions()):
        flag = release.load(version).find(name)
        if flag and flag.replacement and _has_all(c, flag.replacement):
            return flag.replacement
    return None


def _has_all(c: Context, advice: str) -> bool:
    """Whether the pinned release has the flags that a text names: `--a`, or `--a-{b,c}`."""
    named = re.findall(r"--([a-z0-9-]*)(?:\{([a-z0-9,-]+)\})?([a-z0-9-]*)", advice)
    wanted = [
        f"{head}{middle}{tail}" for head, inner, tail in named for middle in (inner.split(",") if inner else [""])
    ]
    return bool(wanted) and all(_is_there(c, one) for one in wanted)


def _is_there(c: Context, name: str) -> bool:
    found = c.spec(name)
    return found is not None and not found.removed


def _problem(flag: Flag, given: FlagValue) -> str | None:
    if flag.type == "flag" and flag.nargs is None:
        return None if given is True else "a flag without value"
    if given is True:
        return None if flag.nargs in {"*", "?"} else "a value is missing"
    values = given if isinstance(given, list) else [given]
    if isinstance(given, list) and flag.nargs not in {"+", "*"}:
        return "a list for a flag that takes one value"
    if not values and flag.nargs != "*":
        return "an empty list"
    wrong = [item for item in values if not (_fits(flag, str(item)) and _in_range(flag, str(item)))]
    return f"not accepted: {_list([str(item) for item in wrong], '')}" if wrong else None


def _fits(flag: Flag, text: str) -> bool:
    if text.startswith("-") and not _NEGATIVE.fullmatch(text) and " " not in text:
        return False  # argparse takes it for another flag
    if flag.choices is not None and flag.type in {"str", "int"}:
        return text in {str(choice) for choice in flag.choices}
    try:
        match flag.type:
            case "int":
                int(text)
            case "float":
                float(text)
            case "json":
                json.loads(text)
            case "human-int":
                return _HUMAN.fullmatch(text.strip()) is not None
    except ValueError:
        return False
    return True


def _range(flag: Flag) -> tuple[float, float] | None:
    return next((_RANGES[name] for name in flag.names if name in _RANGES), None)


def _in_range(flag: Flag, text: str) -> bool:
    if (limits := _range(flag)) is None:
        return True
    try:
        return limits[0] <= float(text) <= limits[1]
    except ValueError:
        return True  # a number with a letter, as 4k


def _wanted(flag: Flag) -> str:
    if flag.choices is not None:
        return "one of: " + ", ".join(str(choice) for choice in flag.choices)
    if (limits := _range(flag)) is not None:
        return f"a number from {limits[0]} {f'to {limits[1]}' if limits[1] < float('inf') else 'on'}"
    return {"flag": "nothing, so `true` here", "human-int": "a number, as 4096 or 4k"}.get(flag.type, f"{flag.type}")


def _elsewhere(c: Context, flag: Flag, given: FlagValue) -> str:
    """Which other releases take the value."""
    if flag.choices is None:
        return "correct the value"
    takes = [
        v for v in release.versions() if (other := release.load(v).find(flag.names[0])) and not _problem(other, given)
    ]
    near = difflib.get_close_matches(str(given), [str(choice) for choice in flag.choices], 1, 0.6)
    hints = [
        *(f"did you mean {word}?" for word in near),
        *([f"SGLang {takes[0]} to {takes[-1]} take it"] if takes else []),
    ]
    return "; ".join(hints) or "choose one of them; no release of the catalogue takes this one"


def _shown(given: FlagValue) -> str:
    text = " ".join(str(item) for item in given) if isinstance(given, list) else "" if given is True else str(given)
    return text if len(text) < 80 else text[:77] + "..."


def _list(names: list[str], dashes: str = "--") -> str:
    return ", ".join(f"{dashes}{name}" for name in names)
