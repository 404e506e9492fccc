"""Pages below docs/ that are made from code and data: rules, settings, problems, flags of each SGLang release."""

import ast
import inspect
import textwrap
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from gpubox.catalog import release
from gpubox.catalog.release import Flag, Release
from gpubox.pages import known_issues as pains
from gpubox.pages import texts
from gpubox.rules.facts import BoxFacts
from gpubox.rules.registry import Rule, rules
from gpubox.server import verdict_page
from gpubox.settings import host as settings
from gpubox.settings import profile, stack

MADE = "<!-- Made by `gpubox docs`; do not edit. -->\n"
"""The first line of every page that is made."""
_TREES: list[tuple[str, type[BaseModel]]] = [
    ("A GPU box (`gpu_boxes` in the inventory, `group_data/gpu_boxes.py`)", settings.BoxSettings),
    ("A hypervisor (`hypervisors` in the inventory, `group_data/hypervisors.py`)", settings.HypervisorSettings),
    ("A profile (`profiles/*.yaml`)", profile.Profile),
    ("A stack (`stacks/*/stack.yaml`)", stack.Stack),
    ("Facts of a box, for the rules", BoxFacts),
]


def all_pages() -> dict[str, str]:
    """Path below docs/ -> text."""
    flags = {f"flags/{version}.md": _flags(release.load(version)) for version in release.versions()}
    problems = "\n".join([MADE, *pains.lines(), ""])
    made = {"rules.md": _rules(), "settings.md": _settings(), "pains.md": problems, "flags/README.md": _releases()}
    made["log.md"] = "\n".join([MADE, *verdict_page.lines(), ""])
    made["texts.md"] = "\n".join([MADE, *texts.lines(), ""])
    return {**made, **flags}


def _rules() -> str:
    lines = [MADE, "# Rules", "", *_RULES_INTRO]
    subject = ""
    for rule in rules().values():
        if rule.subject != subject:
            subject = rule.subject
            lines += ["", f"## {subject.capitalize()}"]
        lines += ["", *_rule(rule)]
    return "\n".join([*lines, ""])


_RULES_INTRO = [
    "`gpubox check` judges every box by these rules before a host is touched; a deploy does the same first, and again",
    "with facts from the box. A rule is broken on purpose by an override of the box, with a reason; its findings are",
    "then one step milder and shown in every run:",
    "",
    '    "overrides": [{"rule": "running-request-cap", "reason": "sixty clients at most, measured"}]',
    "",
    "What a rule may lack is named with it; it then cannot tell, and the check exits with 2 where nothing is wrong:",
    "`release` (SGLang's release is not in the catalogue), `card` and `model` (the profile does not name them, or the",
    "catalogue does not have them), `facts` (not known without the box; asked for only in a deploy). Override",
    "`unknown-release`, `unknown-card`, `unknown-model` or `unknown-facts` to go on without.",
]


def _rule(rule: Rule) -> list[str]:
    detail = " ".join((inspect.getdoc(rule.judge) or "").split())
    lines = [f"### `{rule.id}` ({rule.severity})", "", f"{rule.title} {detail}", ""]
    lines += [f"- {item}" for item in rule.evidence]
    return [*lines, f"- may lack: {', '.join(rule.needs)}"] if rule.needs else lines


def _settings() -> str:
    lines = [
        MADE,
        "# Settings",
        "",
        "Everything that data may say. An unknown key, a wrong type or a missing value is an error that names it.",
    ]
    for title, model in _TREES:
        lines += ["", f"## {title}", "", *_model(model, set())]
    return "\n".join([*lines, ""])


def _model(model: type[BaseModel], seen: set[type[BaseModel]]) -> list[str]:
    """Its fields as a list, then the models that they hold, each once."""
    seen.add(model)
    notes = _notes(model)
    lines = [" ".join((inspect.getdoc(model) or "").split()), ""]
    inner: list[type[BaseModel]] = []
    for name, field in model.model_fields.items():
        held = _models(field.annotation)
        note = notes.get(name) or next((_summary(found) for found in held), "")
        lines.append(f"- `{name}` ({_type(field.annotation)}{_default(field)}): {note}".rstrip(": "))
        inner += [found for found in held if found not in seen]
    for found in dict.fromkeys(inner):
        lines += ["", f"### {found.__name__}", "", *_model(found, seen)]
    return lines


def _summary(model: type[BaseModel]) -> str:
    return (inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ")


def _notes(model: type[BaseModel]) -> dict[str, str]:
    """Text that stands below each field in the source, which is where a reader of the code finds it too."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    notes: dict[str, str] = {}
    previous: ast.stmt | None = None
    for statement in body.body if isinstance(body, ast.ClassDef) else []:
        if (
            isinstance(statement, ast.Expr)
            and isinstance(previous, ast.AnnAssign)
            and isinstance(previous.target, ast.Name)
        ):
            notes[previous.target.id] = " ".join(str(ast.literal_eval(statement.value)).split())
        previous = statement
    return notes


def _type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in parts)
    if origin in (Union, UnionType):
        return " or ".join(_type(part) for part in parts if part is not NoneType)
    if origin is list:
        return f"list of {_type(parts[0])}"
    if origin is dict:
        return f"mapping of {_type(parts[0])} to {_type(parts[1])}"
    if origin is Annotated:
        return _type(parts[0])
    return f"`{annotation.__name__}`"


def _default(field: Any) -> str:
    if field.is_required():
        return ", required"
    value = field.default if field.default is not PydanticUndefined else field.get_default(call_default_factory=True)
    plain = isinstance(value, str | int | float | bool | list | dict) or value is None
    return f", default `{value!r}`" if plain else ""


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and not get_args(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models(part)]


def _releases() -> str:
    lines = [
        MADE,
        "# Flags of SGLang, by release",
        "",
        "Read from the real wheels by `gpubox catalog extract`, without running them.",
        "",
    ]
    lines += [
        "| SGLang | flags | new | gone | torch | flashinfer | transformers | autotune of flashinfer_cutlass |",
        "|" + "---|" * 8,
    ]
    before: Release | None = None
    for version in release.versions():
        found = release.load(version)
        new, gone = _moved(before, found)
        pins = [found.pins.get(name, "").lstrip("=") for name in ("torch", "flashinfer-python", "transformers")]
        cells = [f"[{version}]({version}.md)", len(found.flags), len(new), len(gone), *pins, found.autotune.state]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
        before = found
    return "\n".join([*lines, ""])


def _flags(found: Release) -> str:
    known = release.versions()
    index = known.index(found.sglang)
    before = release.load(known[index - 1]) if index else None
    new, gone = _moved(before, found)
    lines = [MADE, f"# Flags of SGLang {found.sglang}", ""]
    lines += [f"From `{found.wheel}` (SHA-256 `{found.sha256}`).", ""]
    if before is not None:
        lines += [f"Since {before.sglang}: new {_code(new)}; gone {_code(gone)}.", ""]
    lines += ["| flag | takes | default | |", "|---|---|---|---|"]
    lines += [_row(flag) for _, flag in sorted(found.flags.items())]
    return "\n".join([*lines, ""])


def _moved(before: Release | None, after: Release) -> tuple[list[str], list[str]]:
    if before is None:
        return [], []
    return [n for n in after.flags if before.find(n) is None], [n for n in before.flags if after.find(n) is None]


def _code(names: list[str]) -> str:
    return ", ".join(f"`--{name}`" for name in names) or "nothing"


def _row(flag: Flag) -> str:
    takes = (
        " ".join(str(choice) for choice in flag.choices) if flag.choices else "" if flag.type == "flag" else flag.type
    )
    many = {"+": " (one or more)", "*": " (any number)", "?": " (or none)"}.get(flag.nargs or "", "")
    default = "" if flag.default is None or flag.default is False else f"`{flag.default}`"
    state = (
        "stops the launch" if flag.removed else "deprecated" if flag.deprecated else "required" if flag.required else ""
    )
    if flag.replacement:
        state += f"; use `{flag.replacement}`"
    names = ", ".join(f"`--{name}`" for name in flag.names)
    return "| " + " | ".join([names, (takes + many).replace("|", "\\|"), default, state]) + " |"
