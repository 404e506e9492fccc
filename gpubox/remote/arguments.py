"""The arguments of a program: one JSON object, into a dataclass."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TypeVar

T = TypeVar("T")


def parse(kind: type[T], text: str) -> T:
    """The object. Error: ValueError, which names what is known, for anything else."""
    try:
        return kind(**json.loads(text))
    except (ValueError, TypeError) as error:
        known = ", ".join(field.name for field in fields(kind))  # type: ignore[arg-type] # always a dataclass
        raise ValueError(f"arguments on stdin: {error} (a JSON object with: {known})") from error
