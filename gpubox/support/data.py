"""Read data that people write into typed models, with errors that name key, file and what is accepted."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import override

from gpubox.support import validation_errors as mistakes
from gpubox.support.errors import GpuboxError


class Model(BaseModel):
    """The base of all settings: unknown keys and wrong types are errors, nothing is coerced, nothing changes later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


M = TypeVar("M", bound=BaseModel)


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping. Errors: no such file (neighbours are listed), not YAML, a key given twice, not a mapping."""
    value = _parsed(path, _text(path))
    if not isinstance(value, dict):
        found = "nothing" if value is None else f"a {type(value).__name__}"
        raise GpuboxError(f"{path} holds {found}", "a mapping of keys to values")
    return value


def validated(model: type[M], value: dict[str, Any], where: str) -> M:
    """The value as a model. Errors name each wrong key, `where` it stands and what is accepted, all in one message."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        lines = mistakes.lines(model, value, error.errors())
        raise GpuboxError(f"{where}: {len(lines)} setting(s) cannot be used\n  " + "\n  ".join(lines)) from error


def named(model: type[M], name: str, value: dict[str, Any], path: Path) -> M:
    """The value of a file as a model whose `name` is the file's and therefore does not stand in it. Errors as above."""
    if "name" in value:
        raise GpuboxError(f"{path}: name: unknown key", f"the file's own name: {name}", "take it out")
    return validated(model, {"name": name, **value}, str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors put a mark before the first letter
    except FileNotFoundError:
        known = sorted(str(p.relative_to(path.parent)) for p in path.parent.glob("*") if p.suffix in {".yaml", ".yml"})
        raise GpuboxError(f"no such file: {path}", f"one of: {', '.join(known) or 'none there'}") from None
    except UnicodeDecodeError as error:
        raise GpuboxError(f"{path} is not text in UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise GpuboxError(f"{path} cannot be read: {error.strerror}") from error


def _parsed(path: Path, text: str) -> Any:
    try:
        loader = _UniqueKeys(text)
        loader.name = str(path)
        return loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # the latter two: a date that is none, a number of thousands of digits, thousands of open brackets
        raise GpuboxError(f"{path} is not YAML that can be used: {error}") from error


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets a key stand twice and keeps the last; here that is an error, because one of the two was a mistake."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is no single word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)
