"""What runs on a box runs under the oldest Python of a promised system and under the newest."""

import ast
import subprocess
from pathlib import Path

import pytest

import gpubox.remote
from tests.unit.interpreters import interpreters

FOLDER = Path(gpubox.remote.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
IMPORT = (
    "import importlib, sys; sys.path.insert(0, sys.argv[1]); [importlib.import_module(name) for name in sys.argv[2:]]"
)


def _module(file: Path) -> str:
    return ".".join(file.relative_to(FOLDER.parents[1]).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("python", list(interpreters().values()), ids=list(interpreters()))
def test_every_module_is_imported_with_the_standard_library_alone(python: str) -> None:
    command = [python, "-I", "-S", "-c", IMPORT, str(FOLDER.parents[1]), *map(_module, FILES)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_no_union_of_types_is_made_while_it_runs(file: Path) -> None:
    """vermin does not see `isinstance(x, int | str)`, which ends a program of Python 3.9 (PEP 604)."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    calls = [node for node in nodes if isinstance(node, ast.Call) and _names(node.func) & {"isinstance", "issubclass"}]
    assert [call.lineno for call in calls if _has_union(call.args[1])] == []


def _has_union(node: ast.AST) -> bool:
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.BitOr) for one in ast.walk(node))


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
