"""Read data that people write into typed models, with errors that name key, file and what is accepted."""

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import override

from gpubox.errors import GpuboxError


class Model(BaseModel):
    """The base of all settings: unknown keys and wrong types are errors, nothing is coerced, nothing changes later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


M = TypeVar("M", bound=BaseModel)


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping. Errors: no such file (neighbours are listed), not YAML, a key given twice, not a mapping."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        known = sorted(str(p.relative_to(path.parent)) for p in path.parent.glob("*") if p.suffix in {".yaml", ".yml"})
        raise GpuboxError(f"no such file: {path}", f"one of: {', '.join(known) or 'none there'}") from None
    try:
        value = yaml.load(text, _UniqueKeys)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise GpuboxError(f"{path} is not YAML: {error}") from error
    if not isinstance(value, dict):
        raise GpuboxError(f"{path} holds a {type(value).__name__}", "a mapping of keys to values")
    return value


def validated(model: type[M], value: dict[str, Any], where: str) -> M:
    """The value as a model. Errors name each wrong key, `where` it stands and what is accepted, all in one message."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        lines = [_explain(model, detail) for detail in error.errors()]
        raise GpuboxError(f"{where}: {len(lines)} setting(s) cannot be used\n  " + "\n  ".join(lines)) from error


def _explain(model: type[BaseModel], detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in detail["loc"]) or "(whole)"
    if detail["type"] == "extra_forbidden":
        known = _known_keys(model, detail["loc"][:-1])
        near = difflib.get_close_matches(str(detail["loc"][-1]), known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{key}: unknown key{hint} (known here: {', '.join(known)})"
    found = "" if detail["type"] == "missing" else f", found {_shown(detail['input'])}"
    return f"{key}: {detail['msg'][0].lower()}{detail['msg'][1:]}{found}"


def _shown(value: object) -> str:
    text = f"{value!r} ({type(value).__name__})"
    return text if len(text) < 120 else text[:117] + "..."


def _known_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    for part in loc:
        field = model.model_fields.get(str(part))
        nested = _model_in(field.annotation) if field else None
        if nested is not None:
            model = nested
    return sorted(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if (found := _model_in(inner)) is not None:
            return found
    return None


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets a key stand twice and keeps the last; here that is an error, because one of the two was a mistake."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
