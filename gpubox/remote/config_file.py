"""A file that SGLang reads its flags from (`--config`), in the plain form that people write: a name, a value.

A subset of YAML, read without PyYAML, which a machine need not have: one `name: value` a line, lists in brackets or
below each other, comments. What else YAML can say is refused, never guessed.
"""

from __future__ import annotations

import re

_ENTRY = re.compile(r"""(["']?)([A-Za-z][A-Za-z0-9_-]*)\1:(?:\s+(.*))?$""")
_ITEM = re.compile(r"\s*-\s+(.*)$")
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+=~-]*")
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?")
_ODD_NUMBER = re.compile(r"[-+]?(0[0-9_xXoObB]|[0-9][0-9_]*[_:]|\.[0-9]|\.(inf|nan)|[0-9]+-[0-9]+-[0-9]+)", re.I)
_TRUE, _FALSE, _NOTHING = ("true", "yes", "on"), ("false", "no", "off"), ("null", "~")


def read(text: str) -> list[tuple[str, object]]:
    """Name and value of every line, in order: a string (numbers as SGLang prints them), a bool, None, or a list.

    ValueError: a form that is not read here, with its line.
    """
    found: list[tuple[str, object]] = []
    name = ""
    for number, line in enumerate(text.replace("\r\n", "\n").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line == "---":
            continue
        item, entry = _ITEM.match(line), _ENTRY.match(line.rstrip())
        try:
            if item and name:
                _add(found, _scalar(item[1]))
            elif entry:
                name = _entry(found, entry[2], entry[3] or "")
            else:
                raise ValueError("no `name: value`")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if len({key.replace("_", "-") for key, _ in found}) != len(found):
        raise ValueError("a name stands twice")
    return found


def words(items: list[tuple[str, object]]) -> list[str]:
    """The entries as words of a command line: true is the bare flag, false nothing."""
    found: list[str] = []
    for name, value in items:
        if value is False:
            continue
        found.append(f"--{name}")
        if value is not True:
            found += [str(one) for one in (value if isinstance(value, list) else [value])]
    return found


def _entry(found: list[tuple[str, object]], key: str, value: str) -> str:
    """Add an entry; its name, where a list may follow below it."""
    text = value.strip()
    if not text or text.startswith("#"):
        found.append((key, None))
        return key
    found.append((key, _listed(text) if text.startswith("[") else _scalar(text)))
    return ""


def _add(found: list[tuple[str, object]], value: object) -> None:
    key, before = found[-1]
    items = before if isinstance(before, list) else []
    found[-1] = (key, [*items, _word(value)])


def _listed(text: str) -> list[str]:
    inside = re.fullmatch(r"\[([^\[\]{}'\"#]*)\]\s*(#.*)?", text)
    if not inside:
        raise ValueError("a list that is not read here")
    parts = [part.strip() for part in inside[1].split(",")]
    return [_word(_scalar(part)) for part in parts if part]


def _scalar(text: str) -> object:
    """One value as PyYAML's safe loader takes it (YAML 1.1), then as `str` of Python, which SGLang takes of it."""
    quoted = re.fullmatch(r"""'([^']*)'\s*(#.*)?|"([^"\\]*)"\s*(#.*)?""", text.strip())
    if quoted:
        return quoted[1] if quoted[1] is not None else quoted[3]
    plain = re.sub(r"\s+#.*$", "", text).strip()
    small = plain.lower()
    if small in _TRUE or small in _FALSE:
        return small in _TRUE
    if small in _NOTHING:
        return None
    if _WHOLE.fullmatch(plain):
        return str(int(plain))
    if _FRACTION.fullmatch(plain):
        return str(float(plain))
    if _ODD_NUMBER.match(plain) or not _PLAIN.fullmatch(plain) or plain.endswith(":"):
        raise ValueError(f"the value {plain[:20]!r} is not read here")
    return plain


def _word(value: object) -> str:
    return str(value)
