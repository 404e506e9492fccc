"""Many questions in one shell command: each answer comes back whole, with its exit code, whatever bytes it holds.

A round trip costs more than a line of shell (pyinfra-dev/pyinfra#17).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from pyinfra.api import StringCommand

from gpubox.support.errors import CannotTellError


@dataclass(frozen=True)
class Answer:
    """What one question's shell text printed, and the code that it ended with."""

    rc: int
    text: str

    @property
    def lines(self) -> list[str]:
        """The text's lines, without their ends."""
        return self.text.removesuffix("\n").split("\n") if self.text else []

    def expect(self, *codes: int, what: str) -> str:
        """The text, if the exit code is one of `codes`. Error: cannot tell, with `what` was asked."""
        if self.rc in codes:
            return self.text
        said = f": {self.lines[-1][:200]}" if self.lines else ""
        raise CannotTellError(f"{what}: exit code {self.rc}{said}", f"one of {', '.join(map(str, codes))}")

    def yes(self, what: str, no: tuple[int, ...] = (1,)) -> bool:
        """Exit code 0 is yes, one of `no` is no. Error: cannot tell, for any other."""
        self.expect(0, *no, what=what)
        return self.rc == 0


def script(questions: Mapping[str, str | StringCommand]) -> str:
    """One POSIX shell script that asks every question (name of letters, digits, -, _ -> shell text).

    It prints `name base64` lines: what a question printed on stdout, a newline, its exit code.
    """
    return "\n".join(["LC_ALL=C; export LC_ALL", *(_ask(name, _text(asked)) for name, asked in questions.items())])


def answers(lines: list[str]) -> dict[str, Answer]:
    """The answers of a script by name. Error: cannot tell, when a line is not an answer."""
    return dict(_answer(line) for line in lines if line.strip())


def checked(lines: list[str], **also: int) -> dict[str, Answer]:
    """The answers of a script, each with an exit code that is one: 0, or the other that `also` allows its name.

    Error: cannot tell, for any other code.
    """
    found = answers(lines)
    for name, answer in found.items():
        answer.expect(0, *([also[name]] if name in also else []), what=name)
    return found


def _text(asked: str | StringCommand) -> str:
    return asked.get_raw_value() if isinstance(asked, StringCommand) else asked


def _ask(name: str, text: str) -> str:
    """base64 keeps a file's last newline, trailing blanks and odd bytes, which a line-wise reader loses."""
    return f"printf '%s ' {name}; {{ (\n{text}\n) 2>/dev/null; printf '\\n%s' \"$?\"; }} | base64 -w0; echo"


def _answer(line: str) -> tuple[str, Answer]:
    name, _, packed = line.partition(" ")
    try:
        text, _, code = base64.b64decode(packed, validate=True).decode(errors="surrogateescape").rpartition("\n")
        return name, Answer(int(code), text)
    except ValueError as error:
        raise CannotTellError(
            f"not an answer of the host: {line[:80]!r}",
            "a login shell there that prints nothing by itself",
            "in its .bashrc (or .profile, .cshrc), put what prints below: case $- in *i*) ;; *) return ;; esac",
        ) from error
