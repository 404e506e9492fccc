"""What is wrong with data that people wrote, in their words: where it stands, what was found, what is accepted."""

import difflib
import reprlib

from pydantic import BaseModel
from pydantic_core import ErrorDetails


def lines(model: type[BaseModel], value: object, details: list[ErrorDetails]) -> list[str]:
    """A line for each wrong place. pydantic gives an error for each type that a setting may have: they become one."""
    keys = [detail for detail in details if _is_key(detail)]
    places: dict[tuple[str, ...], list[ErrorDetails]] = {}
    for detail in details:
        if detail not in keys:
            places.setdefault(_place(value, detail), []).append(detail)
    # what is wrong inside says more than that the whole is none of the other types either
    inner = [place for place in places if not any(place == other[: len(place)] != other for other in places)]
    return [_key_line(value, key) for key in keys] + [_line(model, ".".join(p), places[p]) for p in inner]


def _is_key(detail: ErrorDetails) -> bool:
    return detail["type"] == "invalid_key" or "[key]" in detail["loc"]


def _key_line(value: object, detail: ErrorDetails) -> str:
    above = detail["loc"][: -2 if "[key]" in detail["loc"] else -1]
    where = ".".join(_walk(value, above)) or "(whole)"
    if isinstance(detail["input"], str):
        return f"{where}: key {_shown(detail['input'])}: {detail['msg'].removeprefix('Value error, ')}"
    return f"{where}: a key that is {_shown(detail['input'])}: put it in quotes if it is meant as a word"


def _place(value: object, detail: ErrorDetails) -> tuple[str, ...]:
    found = _walk(value, detail["loc"])
    return (*found, str(detail["loc"][-1])) if detail["type"] == "missing" else found


def _walk(value: object, loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """Where in the data: pydantic's path, but without the names of the types that it tried."""
    path: list[str] = []
    for part in loc:
        if (below := _below(value, part)) is not None:
            value = below[0]
            path.append(str(part))
    return tuple(path)


def _below(value: object, part: int | str) -> tuple[object] | None:
    if isinstance(value, dict) and part in value:
        return (value[part],)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return (value[part],)
    return None


def _line(model: type[BaseModel], place: str, found: list[ErrorDetails]) -> str:
    first, value = found[0], found[0]["input"]
    if first["type"] == "extra_forbidden":
        return f"{place}: {_unknown_key(model, first['loc'])}"
    if first["type"] == "missing":
        return f"{place}: field required"
    *most, last = [found[0]["msg"], *(detail["msg"].removeprefix("Input should be ") for detail in found[1:])]
    wanted = f"{', '.join(most)} or {last}" if most else last
    is_word = any(detail["type"] == "string_type" for detail in found) and isinstance(value, bool | int | float)
    hint = "; in quotes it is a string" if is_word else ""
    return f"{place}: {wanted[0].lower()}{wanted[1:]}, found {_shown(value)}{hint}"


def _unknown_key(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    known = _known_keys(model, loc[:-1])
    near = difflib.get_close_matches(str(loc[-1]), known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown key{hint} (known here: {', '.join(known)})"


def _shown(value: object) -> str:
    short = reprlib.Repr()  # deep and wide data (an anchor repeated a thousandfold) is never written out
    short.maxstring = short.maxother = short.maxlong = 100
    return f"{short.repr(value)} ({type(value).__name__})"


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
