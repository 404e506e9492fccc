"""The command-line flags of an SGLang wheel, from its syntax tree.

Two shapes, both in use: calls of `parser.add_argument` in `ServerArgs.add_cli_args` (all of them up to 0.5.13), and
annotated fields `name: A[type, Arg(...)]` in `ServerArgs` (from 0.5.14) or in the classes that `_INPUT_NAMESPACES`
lists (from 0.5.20).
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from gpubox.catalog.evaluate import ClassRef, Evaluator, OpenValueError
from gpubox.catalog.release import Flag
from gpubox.catalog.wheel import Wheel
from gpubox.support.errors import GpuboxError

_MODULE = "sglang.srt.server_args"
_TYPES = {
    "int": "int",
    "float": "float",
    "str": "str",
    "nullable_str": "str",
    "json.loads": "json",
    "json_list_type": "json",
    "human_readable_int": "human-int",
    "parse_cuda_graph_config_arg": "json",
    "parse_cuda_graph_backend_arg": "str",
}


class Arguments:
    """Reads flags; what could not be told is collected in `open`."""

    def __init__(self, wheel: Wheel) -> None:
        self.open: set[str] = set()
        self._wheel = wheel
        self._evaluator = Evaluator(wheel)
        self._server_args = self._evaluator.find_class(_MODULE, "ServerArgs")

    def flags(self) -> list[Flag]:
        """All flags. Error: a shape that this reader does not know, so that nothing is missed in silence."""
        found = [flag for owner in self._field_classes() for flag in self._from_fields(owner)]
        found += list(self._from_calls())
        names = [name for flag in found for name in flag.names]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not found:
            raise GpuboxError(f"{self._wheel.path.name}: read {len(found)} flags, twice: {twice}", "each flag once")
        return found

    def _field_classes(self) -> list[ClassRef]:
        if not any("add_cli_args_from_dataclass" in ast.unparse(s) for s in self._add_cli_args().body):
            return []
        try:
            return list(self._evaluator.lookup(_MODULE, "_INPUT_NAMESPACES"))
        except OpenValueError:
            return [self._server_args]

    def _add_cli_args(self) -> ast.FunctionDef:
        body = self._server_args.node.body
        return next(n for n in body if isinstance(n, ast.FunctionDef) and n.name == "add_cli_args")

    def _from_fields(self, owner: ClassRef) -> Iterator[Flag]:
        fields = {  # a field may stand twice in a class (dcp_size in 0.5.15): the last one counts, as in Python
            statement.target.id: (statement.annotation, statement.value)
            for statement in owner.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        }
        for name, (annotation, value) in fields.items():
            if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in {"A", "Annotated"}:
                yield from self._from_field(owner, name, annotation, value)

    def _from_field(self, owner: ClassRef, name: str, note: ast.Subscript, value: ast.expr | None) -> Iterator[Flag]:
        parts = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
        call = next((p for p in parts[1:] if isinstance(p, ast.Call) and ast.unparse(p.func) == "Arg"), None)
        given = {k.arg: k.value for k in call.keywords if k.arg} if call else {}
        described = call is not None or any(self._text(owner.module, part) is not None for part in parts[1:])
        if "no_cli" in given or not described:
            return
        yield from self._field_flag(owner.module, name, parts[0], given, value)

    def _field_flag(
        self, module: str, name: str, kind: ast.expr, given: dict[str, ast.expr], value: ast.expr | None
    ) -> Iterator[Flag]:
        first = self._text(module, given.get("cli_name")) or "--" + name.replace("_", "-")
        names = [first, *(self._value(module, given.get("aliases"), first) or [])]
        inner, literal = _unwrapped(kind)
        shape: dict[str, Any] = {"names": names, **self._action(module, given)}
        if "action" not in given:
            listed = inner.startswith(("List[", "list[")) and "type_parser" not in given
            element = inner[5:-1] if listed else inner
            shape["type"] = (
                self._type(ast.unparse(given["type_parser"]), first)
                if "type_parser" in given
                else _TYPES.get(element, "str")
            )
            shape["nargs"] = self._text(module, given.get("nargs")) or ("+" if listed else None)
            if inner == "bool" and literal is None:
                shape["type"], shape["nargs"] = "flag", None
        shape["choices"] = self._value(module, given.get("choices"), f"choices of {first}") or literal
        made = isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field")  # an empty list or the like
        shape["default"] = None if made else self._value(module, value, f"default of {first}")
        shape["required"] = value is None and "required" not in given
        yield _flag(shape)

    def _action(self, module: str, given: dict[str, ast.expr]) -> dict[str, Any]:
        action = ast.unparse(given["action"]) if "action" in given else None
        if action is None:
            return {}
        extra = given.get("action_kwargs")
        keys = dict(zip(map(ast.unparse, extra.keys), extra.values, strict=True)) if isinstance(extra, ast.Dict) else {}  # type: ignore[arg-type]  # None keys are spreads, which no release has
        return self._by_action(action, {key.strip("'\""): node for key, node in keys.items()}, module)

    def _by_action(self, action: str, given: dict[str, ast.expr], module: str) -> dict[str, Any]:
        kind = action.split(".")[-1].strip("'\"")
        if kind == "BooleanOptionalAction":
            return {"type": "flag", "negatable": True}
        shape: dict[str, Any] = {"nargs": self._text(module, given.get("nargs"))}
        if kind in {
            "store_true",
            "store_false",
            "DeprecatedAction",
            "DeprecatedStoreTrueAction",
            "DeprecatedStoreConstAction",
        }:
            shape["type"] = "flag"
        elif kind in {"LoRAPathAction", "DeprecatedAliasStoreAction"} or kind.endswith("Action"):
            shape["type"] = self._type(ast.unparse(given["type"]) if "type" in given else "str", action)
        else:
            raise GpuboxError(
                f"{self._wheel.path.name}: unknown action {action}", "", "teach gpubox/catalog/arguments.py"
            )
        if kind.startswith("Deprecated"):
            message = self._text(module, given.get("error_message"))
            shape |= {"deprecated": True, "removed": message is not None}
            shape["replacement"] = self._text(module, given.get("new_flag")) or _named_flag(
                message or self._text(module, given.get("help")) or ""
            )
        return shape

    def _from_calls(self) -> Iterator[Flag]:
        local: dict[str, Any] = {}
        for statement in self._add_cli_args().body:
            text = ast.unparse(statement)
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                local[statement.targets[0].id] = self._value(_MODULE, statement.value, statement.targets[0].id, local)
            elif text.startswith("parser.add_argument(") and isinstance(statement, ast.Expr):
                yield self._from_call(statement.value, local)
            elif not text.startswith(("add_cli_args_from_dataclass(", "if envs.", "if SGLANG", '"""', "'''")):
                raise GpuboxError(
                    f"{self._wheel.path.name}: unknown statement {text[:100]}", "", "teach gpubox/catalog/arguments.py"
                )

    def _from_call(self, call: Any, local: dict[str, Any]) -> Flag:
        names = [self._evaluator.value(_MODULE, node) for node in call.args]
        given: dict[str, ast.expr] = {k.arg: k.value for k in call.keywords if k.arg}
        first = names[0]
        shape: dict[str, Any] = {"names": names}
        shape["type"] = self._type(ast.unparse(given["type"]), first) if "type" in given else "str"
        shape["nargs"] = self._text(_MODULE, given.get("nargs"))
        if "action" in given:
            shape |= self._by_action(ast.unparse(given["action"]), given, _MODULE)
        if "nargs" in given and ast.unparse(given["nargs"]) == "None":
            shape["type"] = "str"
        shape["choices"] = self._value(_MODULE, given.get("choices"), f"choices of {first}", local)
        shape["default"] = self._default(given.get("default"), first)
        shape["required"] = self._value(_MODULE, given.get("required"), f"required of {first}") is True
        text = self._text(_MODULE, given.get("help")) or ""
        if "deprecated" not in shape and re.match(r"[\[(]?deprecated", text, re.IGNORECASE):
            shape |= {"deprecated": True, "replacement": _named_flag(text)}
        return _flag(shape)

    def _default(self, node: ast.expr | None, first: str) -> Any:
        if node is None or "SUPPRESS" in ast.unparse(node):
            return None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_declared_default":
            return self._declared(str(ast.literal_eval(node.args[0])), first)
        return self._value(_MODULE, node, f"default of {first}")

    def _declared(self, field: str, first: str) -> Any:
        for owner in self._field_classes():
            if field in (attributes := owner.attributes()):
                return self._value(owner.module, attributes[field], f"default of {first}")
        return None

    def _type(self, name: str, first: str) -> str:
        known = _TYPES.get(name)
        if known is None:
            self.open.add(f"type of {first.lstrip('-')}: {name}")
        return known or "str"

    def _text(self, module: str, node: ast.expr | None) -> str | None:
        try:
            value = None if node is None else self._evaluator.value(module, node)
        except OpenValueError:
            return None
        return value if isinstance(value, str) else None

    def _value(self, module: str, node: ast.expr | None, what: str, local: dict[str, Any] | None = None) -> Any:
        try:
            return None if node is None else self._evaluator.value(module, node, local)
        except OpenValueError as reason:
            self.open.add(f"{what}: {reason}".replace("--", ""))
            return None


def _unwrapped(kind: ast.expr) -> tuple[str, list[Any] | None]:
    """A field's type without Optional, and the values of a Literal."""
    text = ast.unparse(kind)
    match = re.fullmatch(r"(?:Optional\[(.*)\]|(.*?) \| None)", text)
    inner = (match.group(1) or match.group(2)) if match else text
    if inner.startswith("Literal["):
        values = [value for value in ast.literal_eval(f"[{inner[8:-1]}]") if value is not None]
        return type(values[0]).__name__, values
    return inner, None


def _named_flag(text: str) -> str | None:
    """The flag that a deprecation text names besides the deprecated one."""
    named = re.findall(r"[Uu]se:? '?(--[a-z0-9-]+(?:=[\w.-]+)?)", text)
    return named[0] if named else None


def _flag(shape: dict[str, Any]) -> Flag:
    names = [str(name).lstrip("-") for name in shape["names"]]
    if shape.pop("negatable", False):
        names += [f"no-{name}" for name in names]
    return Flag.model_validate({**shape, "names": names, "default": _plain(shape.get("default"))})


def _plain(value: Any) -> Any:
    plain = isinstance(value, bool | int | float | str | list) or value is None
    return (value or None) if isinstance(value, list) else value if plain else str(value)
