"""What nvidia-smi says when it does not answer: whole messages, and words in place of one card's value (nvml.yaml)."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpubox.support import known_texts
from gpubox.support.data import Model
from gpubox.support.known_texts import KnownText

NOT_KNOWN = "gpubox does not know this text"
UNKNOWN_CURE = "ask nvidia-smi -q and the kernel log of the machine that has the driver (gpubox doctor reads both)"


class Field(KnownText):
    """A word in place of a value."""

    broken: bool
    """The card itself does not answer; else only this value is not known."""


class Table(Model):
    """The whole file."""

    messages: list[KnownText]
    fields: list[Field]


@dataclass(frozen=True)
class Explanation:
    """What a message means."""

    found: str
    """The message itself, on one line."""
    cause: str
    cure: str
    known: bool = True


@dataclass(frozen=True)
class Cell:
    """One value of one card."""

    value: str | None
    """As printed; None: not known."""
    said: str = ""
    """The word that stood in its place; empty: it is a value."""
    broken: bool = False
    """That word says that the card does not answer."""


@cache
def table() -> Table:
    """The table of nvml.yaml."""
    return known_texts.load(Table, Path(__file__).with_suffix(".yaml"))


def explain(said: str) -> Explanation:
    """What nvidia-smi said instead of an answer; of a text that is not known, the text itself and no guess."""
    found = " ".join(said.split())
    known = known_texts.first(table().messages, found)
    if known is None:
        return Explanation(found, NOT_KNOWN, UNKNOWN_CURE, known=False)
    return Explanation(found, known.cause, " ".join(known.cure.split()))


def cell(text: str) -> Cell:
    """One cell of `nvidia-smi --query-gpu`; a word in brackets that is not known is not taken for a value either."""
    word = text.strip()
    if not word:
        return Cell(None)
    known = known_texts.first(table().fields, word)
    if known is not None:
        return Cell(None, word.strip("[]"), known.broken)
    if re.fullmatch(r"\[.*\]", word):
        return Cell(None, word.strip("[]"))
    return Cell(word)


def field_meaning(said: str) -> Explanation:
    """What a word in place of a value means."""
    known = known_texts.first(table().fields, said)
    if known is None:
        return Explanation(said, NOT_KNOWN, UNKNOWN_CURE, known=False)
    return Explanation(said, known.cause, known.cure)
