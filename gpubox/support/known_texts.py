"""Tables of texts that other programs print, with cause and cure: one shape and one loader for all of them."""

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import Field, field_validator

from gpubox.support.data import Model, read_yaml, validated

M = TypeVar("M", bound=Model)


class KnownText(Model):
    """One text that a program prints."""

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    pattern: str
    """Regular expression, searched in each line."""
    cause: str
    """One sentence."""
    cure: str
    """What to do."""
    source: str
    """A public page, or where it was seen or read."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return pattern

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The pattern, ready to search with."""
        return re.compile(self.pattern)


T = TypeVar("T", bound=KnownText)


def load(model: type[M], path: Path) -> M:
    """A table from its YAML file. Errors name the key that cannot be used."""
    return validated(model, read_yaml(path), path.name)


def first(texts: Iterable[T], said: str) -> T | None:
    """The first of the texts that stands in what was said; None: it is not one that is known."""
    return next((text for text in texts if text.expression.search(said)), None)
