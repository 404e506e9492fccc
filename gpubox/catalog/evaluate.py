"""What an expression in a wheel's source is worth, without importing it: constants, lists, enums, class attributes.

Everything else raises `OpenValueError`: the catalogue then says that it does not know, and never guesses.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from gpubox.catalog.wheel import Wheel


class OpenValueError(Exception):
    """The value depends on something that only running the code would tell."""


@dataclass(frozen=True)
class ClassRef:
    """A class in the wheel."""

    module: str
    node: ast.ClassDef

    @property
    def is_enum(self) -> bool:
        """Iterating it gives its members."""
        return any(ast.unparse(base).split(".")[-1] in {"Enum", "IntEnum", "StrEnum"} for base in self.node.bases)

    def attributes(self) -> dict[str, ast.expr]:
        """Names that its body assigns, in order."""
        return {name: value for statement in self.node.body for name, value in _assigned(statement)}


@dataclass(frozen=True)
class Member:
    """A member of an enum."""

    name: str
    value: Any


class Evaluator:
    """Values of expressions in one wheel."""

    def __init__(self, wheel: Wheel) -> None:
        self._wheel = wheel
        self._trees: dict[str, ast.Module] = {}
        self._names: dict[str, dict[str, ast.AST]] = {}

    def tree(self, module: str) -> ast.Module:
        """The module's syntax tree. Error: no such module in the wheel."""
        if module not in self._trees:
            source = self._wheel.source(module)
            if source is None:
                raise OpenValueError(f"{module} is not in the wheel")
            self._trees[module] = ast.parse(source)
        return self._trees[module]

    def find_class(self, module: str, name: str) -> ClassRef:
        """A class that a module defines, even where it later gives the name to something made from it."""
        node = next((n for n in self.tree(module).body if isinstance(n, ast.ClassDef) and n.name == name), None)
        if node is None:
            raise OpenValueError(f"{module} defines no class {name}")
        return ClassRef(module, node)

    def value(self, module: str, node: ast.AST, local: dict[str, Any] | None = None) -> Any:
        """The worth of an expression; `local` are names that stand before the module's own."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise OpenValueError(f"{ast.unparse(node)[:80]}")
        return handler(self, module, node, {} if local is None else local)

    def lookup(self, module: str, name: str) -> Any:
        """What a module-level name is worth."""
        definition = self._definitions(module).get(name)
        if definition is None:
            raise OpenValueError(f"{name} is not defined in {module}")
        if isinstance(definition, ast.ClassDef):
            return ClassRef(module, definition)
        if isinstance(definition, ast.ImportFrom):
            source = next(a.name for a in definition.names if (a.asname or a.name) == name)
            return self.lookup(_absolute(module, definition), source)
        return self.value(module, definition)

    def _definitions(self, module: str) -> dict[str, ast.AST]:
        if module not in self._names:
            self._names[module] = dict(_definitions(self.tree(module).body))
        return self._names[module]


def _definitions(body: Iterable[ast.stmt]) -> Iterable[tuple[str, ast.AST]]:
    for statement in body:
        yield from _assigned(statement)
        if isinstance(statement, ast.ClassDef):
            yield statement.name, statement
        if isinstance(statement, ast.ImportFrom):
            yield from ((alias.asname or alias.name, statement) for alias in statement.names)
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from _definitions(statement.body)


def _assigned(statement: ast.stmt) -> Iterable[tuple[str, ast.expr]]:
    if isinstance(statement, ast.Assign):
        yield from ((t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name))
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        yield statement.target.id, statement.value


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    return ".".join([*module.split(".")[: -node.level], *([node.module] if node.module else [])])


def _constant(_: Evaluator, __: str, node: Any, ___: dict[str, Any]) -> Any:
    return node.value


def _sequence(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> list[Any]:
    values: list[Any] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            values.extend(_items(evaluator, evaluator.value(module, item.value, local)))
            continue
        values.append(evaluator.value(module, item, local))
    return sorted(values) if isinstance(node, ast.Set) else values


def _mapping(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            merged.update(evaluator.value(module, value, local))
            continue
        merged[evaluator.value(module, key, local)] = None  # only keys are ever asked for; values are often classes
    return merged


def _name(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> Any:
    return local[node.id] if node.id in local else evaluator.lookup(module, node.id)


def _attribute(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> Any:
    base = evaluator.value(module, node.value, local)
    if isinstance(base, Member) and node.attr in {"name", "value"}:
        return getattr(base, node.attr)
    if isinstance(base, ClassRef) and node.attr in (attributes := base.attributes()):
        scope = _ClassScope(evaluator, base)
        value = evaluator.value(base.module, attributes[node.attr], scope)
        return Member(node.attr, value) if base.is_enum else value
    raise OpenValueError(ast.unparse(node))


class _ClassScope(dict[str, Any]):
    """Names that a class body sees: its own attributes, evaluated when asked for."""

    def __init__(self, evaluator: Evaluator, owner: ClassRef) -> None:
        super().__init__()
        self._evaluator, self._owner, self._attributes = evaluator, owner, owner.attributes()

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    @override
    def __getitem__(self, name: str) -> Any:
        return self._evaluator.value(self._owner.module, self._attributes[name], {})


def _addition(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> Any:
    left, right = (evaluator.value(module, side, local) for side in (node.left, node.right))
    if isinstance(node.op, ast.Add):
        return left + right if isinstance(left, str) else [*_items(evaluator, left), *_items(evaluator, right)]
    if isinstance(node.op, ast.Mult | ast.Pow) and all(isinstance(side, int | float) for side in (left, right)):
        return left * right if isinstance(node.op, ast.Mult) else left**right
    raise OpenValueError(ast.unparse(node))


def _negative(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> Any:
    value = evaluator.value(module, node.operand, local)
    if isinstance(node.op, ast.USub) and isinstance(value, int | float):
        return -value
    raise OpenValueError(ast.unparse(node))


def _item(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> Any:
    base, index = evaluator.value(module, node.value, local), evaluator.value(module, node.slice, local)
    if isinstance(base, list) and isinstance(index, int) and index < len(base):
        return base[index]
    raise OpenValueError(ast.unparse(node))


def _call(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> Any:
    function = node.func
    if (
        isinstance(function, ast.Name)
        and function.id in {"list", "tuple", "set", "frozenset", "sorted"}
        and len(node.args) == 1
    ):
        values = _items(evaluator, evaluator.value(module, node.args[0], local))
        return sorted(values) if function.id not in {"list", "tuple"} else values
    if isinstance(function, ast.Attribute) and not node.args:
        base = evaluator.value(module, function.value, local)
        if isinstance(base, dict) and function.attr == "keys":
            return list(base)
        if isinstance(base, str) and function.attr in {"lower", "upper"}:
            return getattr(base, function.attr)()
    if isinstance(function, ast.Name) and not node.args:
        return _returned(evaluator, module, function.id)
    raise OpenValueError(ast.unparse(node)[:80])


def _returned(evaluator: Evaluator, module: str, name: str) -> Any:
    """The last plain `return` of a function without arguments: a branch before it serves plugins that are not there."""
    function = next((n for n in evaluator.tree(module).body if isinstance(n, ast.FunctionDef) and n.name == name), None)
    if function is None or not isinstance(function.body[-1], ast.Return) or function.body[-1].value is None:
        raise OpenValueError(f"{name}()")
    imports = {
        alias.asname or alias.name: evaluator.lookup(_absolute(module, statement), alias.name)
        for statement in function.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    return evaluator.value(module, function.body[-1].value, imports)


def _comprehension(evaluator: Evaluator, module: str, node: Any, local: dict[str, Any]) -> list[Any]:
    loop = node.generators[0]
    if len(node.generators) != 1 or loop.ifs or not isinstance(loop.target, ast.Name):
        raise OpenValueError(ast.unparse(node))
    source = evaluator.value(module, loop.iter, local)
    return [evaluator.value(module, node.elt, {**local, loop.target.id: item}) for item in _items(evaluator, source)]


def _items(evaluator: Evaluator, value: Any) -> list[Any]:
    if isinstance(value, list | tuple | dict):
        return list(value)
    if isinstance(value, ClassRef) and value.is_enum:
        return [Member(name, evaluator.value(value.module, node)) for name, node in value.attributes().items()]
    raise OpenValueError(f"{str(value)[:80]} is not a list")


_HANDLERS: dict[type[ast.AST], Callable[[Evaluator, str, Any, dict[str, Any]], Any]] = {
    ast.Constant: _constant,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _mapping,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _addition,
    ast.UnaryOp: _negative,
    ast.Subscript: _item,
    ast.Call: _call,
    ast.ListComp: _comprehension,
}
