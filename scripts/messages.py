"""Print every message that a person can meet, one a line, to be read in one go: `python scripts/messages.py`.

Collected from the syntax tree: the texts of raised errors, of findings and checks, of `echo` and `print`, help texts of
commands and options. A placeholder stands as {name}.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAYING = {
    "GpuboxError",
    "CannotTellError",
    "InventoryError",
    "OperationError",
    "PyinfraError",
    "ClickException",
    "UsageError",
    "BadParameter",
    "Finding",
    "Check",
    "compared",
    "echo",
    "secho",
    "print",
    "option",
    "argument",
    "Refused",
    "Failed",
}
"""Names of what is called with words for people."""


def main() -> int:
    """Print the list."""
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        for line, text in messages(ast.parse(path.read_text())):
            print(f"{name}:{line}: {text}")
    return 0


def files() -> Iterator[Path]:
    """The product's own Python, the practice machine's too."""
    yield from sorted((ROOT / "gpubox").rglob("*.py"))
    yield from sorted((ROOT / "tasks").glob("*.py"))


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each message in a module."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or called(node) not in SAYING:
            continue
        words = [text for value in values(node) for text in texts(value)]
        if words:
            yield node.lineno, " | ".join(words)


def called(node: ast.Call) -> str:
    """The last part of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def values(node: ast.Call) -> list[ast.expr]:
    """All arguments of a call, named ones too."""
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def texts(node: ast.expr) -> Iterator[str]:
    """The texts with a space in an expression: a single word is a name, not a message."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part(value) for value in node.values)
    elif isinstance(node, ast.BinOp):
        yield from texts(node.left)
        yield from texts(node.right)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    elif isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            yield from texts(item)


def part(value: ast.expr) -> str:
    """One piece of an f-string."""
    if isinstance(value, ast.FormattedValue):
        return "{" + ast.unparse(value.value) + "}"
    return str(value.value) if isinstance(value, ast.Constant) else ""


if __name__ == "__main__":
    sys.exit(main())
