"""One command out of several reads, and its output taken apart: a round trip costs more than a line of shell."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyinfra.api import StringCommand

_MARK = "@@gpubox@@"


def script(sections: Mapping[str, StringCommand]) -> StringCommand:
    """One command that runs every section in a subshell, each announced by its name and closed by its exit code."""
    bits: list[str | StringCommand] = []
    for name, command in sections.items():
        bits += [f"echo {_MARK} {name}; (", command, f"); code=$?; echo; echo {_MARK} =$code;"]
    return StringCommand(*bits)


@dataclass(frozen=True)
class Section:
    """What one section printed, and its exit code."""

    lines: list[str]
    code: int


def split(output: list[str], **expected: int) -> dict[str, Section]:
    """Name -> section. A section that did not end, or ended with an unexpected exit code, is an error, never an answer.

    + expected: name -> the exit code that is an answer too, beside 0
    """
    found: dict[str, Section] = {}
    name, lines = "", list[str]()
    for line in output:
        if not line.startswith(_MARK):
            lines.append(line)
            continue
        word = line[len(_MARK) :].strip()
        if word.startswith("="):
            found[name] = Section(lines[:-1] if lines and lines[-1] == "" else lines, int(word[1:]))
            name = ""
        else:
            name, lines = word, []
    if name:
        raise ValueError(f"section {name} did not end: {lines[-3:]}")
    for key, section in found.items():
        if section.code not in {0, expected.get(key, 0)}:
            raise ValueError(f"section {key} ended with {section.code}: {section.lines[-3:]}")
    return found
