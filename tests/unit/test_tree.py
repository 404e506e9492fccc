"""Promises that the tree itself must keep."""

import ast
import re
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined

from gpubox.support import paths, templates

ROOT = paths.root()
PRODUCT = [p for p in sorted((ROOT / "gpubox").rglob("*.py")) if "lab" not in p.relative_to(ROOT / "gpubox").parts]
STEPS = sorted((ROOT / "tasks").glob("*.py"))
ALWAYS_CHANGED = {"shell", "script", "call", "daemon_reload", "reboot", "wait"}
# Of pyinfra 3.10: they see a change where none is, or none where one is, or write where cuda-keyring does not.
UNSOUND = {"apt.key", "files.line", "pip.packages", "pip.venv", "server.modprobe", "uv.packages", "uv.venv"}


@pytest.mark.parametrize("path", sorted(p.name for p in paths.templates().glob("*.j2")))
def test_templates_compile_and_know_no_default_for_a_missing_name(path: str) -> None:
    environment = templates.environment()
    assert environment.undefined is StrictUndefined
    assert isinstance(environment, Environment)
    environment.get_template(path)


@pytest.mark.parametrize("path", PRODUCT + STEPS, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_asserts_and_no_practice_machine_in_the_product(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)] == []
    if path.parent.name == "cli":  # `gpubox lab` is how people reach it
        return
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert [name for name in names if name.startswith("gpubox.lab")] == []


@pytest.mark.parametrize("path", PRODUCT + STEPS, ids=lambda p: str(p.relative_to(ROOT)))
@pytest.mark.pain("P09", "P37", "P38", "P77", "P84")
def test_no_unsound_operation_is_called(path: Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert [call for call in map(ast.unparse, calls) if call in UNSOUND] == []


@pytest.mark.parametrize("path", STEPS, ids=lambda p: p.name)
def test_steps_call_nothing_that_always_changes(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    always = [c.func.attr for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in ALWAYS_CHANGED]
    assert always == []


@pytest.mark.parametrize("path", [*STEPS, ROOT / "deploy.py"], ids=lambda p: p.name)
@pytest.mark.pain("P75")
def test_no_operation_has_a_condition_that_a_dry_run_cannot_know(path: Path) -> None:
    """Such an operation counts as a change before the deploy: each decides in itself."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert [ast.unparse(c) for c in calls if any(word.arg == "_if" for word in c.keywords)] == []
    later = {"when", "did_change", "did_succeed", "any_changed", "all_changed"}
    assert [ast.unparse(c) for c in calls if ast.unparse(c.func).rpartition(".")[2] in later] == []


def test_every_suppression_says_why() -> None:
    pattern = re.compile(r"#\s*(?:noqa: (?:[A-Z]+\d+,? ?)+|type: ignore\[[\w, -]+\])(?P<reason>.*)$")
    bare = []
    for path in [*PRODUCT, *STEPS, *sorted((ROOT / "gpubox" / "lab").rglob("*.py"))]:
        above = False  # one reason serves the lines right below it
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = pattern.search(line)
            said = found is not None and len(found["reason"].strip(" -#")) >= 8
            if found and not said and not above:
                bare.append(f"{path.relative_to(ROOT)}:{number}")
            above = said or (found is not None and above)
    assert bare == []
