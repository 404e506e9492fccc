"""Further settings of NCCL as choices with their sources (recipes.yaml)."""

from functools import cache
from pathlib import Path

import yaml
from pydantic import Field

from gpubox.support.data import Model


class Recipe(Model):
    """One set of settings that somebody ran."""

    name: str
    purpose: str
    p2p: bool
    """Needs peer-to-peer that works."""
    sockets: int = Field(ge=1)
    """Smallest number of CPU sockets that the cards hang on."""
    environment: dict[str, str] = Field(min_length=1)
    note: str
    source: str


def fitting(p2p: bool, sockets: int) -> list[Recipe]:
    """The recipes for cards with or without peer-to-peer on so many sockets."""
    return [recipe for recipe in recipes() if (p2p or not recipe.p2p) and sockets >= recipe.sockets]


@cache
def recipes() -> tuple[Recipe, ...]:
    """All of them, as they stand in the file."""
    text = Path(__file__).with_suffix(".yaml").read_text()
    return tuple(Recipe.model_validate(each) for each in yaml.safe_load(text))
