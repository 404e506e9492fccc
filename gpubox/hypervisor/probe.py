"""Many questions in one shell command: each answer comes back whole, with its exit code, whatever bytes it holds."""

import base64
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from gpubox.errors import CannotTellError


@dataclass(frozen=True)
class Answer:
    """What one question's shell text printed, and the code that it ended with."""

    rc: int
    text: str

    def expect(self, *codes: int, what: str) -> str:
        """The text, if the exit code is one of `codes`. Error: cannot tell, with `what` was asked."""
        if self.rc in codes:
            return self.text
        raise CannotTellError(f"{what}: exit code {self.rc}", f"one of {', '.join(map(str, codes))}")

    def yes(self, what: str, no: tuple[int, ...] = (1,)) -> bool:
        """Exit code 0 is yes, one of `no` is no. Error: cannot tell, for any other."""
        self.expect(0, *no, what=what)
        return self.rc == 0


def script(questions: Mapping[str, str]) -> str:
    """One POSIX shell script that asks every question (name -> shell text) and prints `name base64` lines."""
    asked = [f"ask {shlex.quote(name)} {shlex.quote(text)}" for name, text in questions.items()]
    return "\n".join([_ASK, *asked])


def answers(lines: list[str]) -> dict[str, Answer]:
    """The answers of a script by name. Error: cannot tell, when a line is not an answer."""
    return dict(_answer(line) for line in lines if line.strip())


def _answer(line: str) -> tuple[str, Answer]:
    name, _, packed = line.partition(" ")
    try:
        text, _, code = base64.b64decode(packed, validate=True).decode(errors="surrogateescape").rpartition("\n")
        return name, Answer(int(code), text)
    except ValueError as error:
        raise CannotTellError(f"not an answer of the hypervisor: {line[:80]!r}") from error


# base64 keeps a file's last newline, trailing blanks and odd bytes, which a line-wise reader loses
_ASK = r"""LC_ALL=C; export LC_ALL; ask() { printf '%s ' "$1"; { (eval "$2") 2>/dev/null; printf '\n%s' "$?"; } | base64 -w0; echo; }"""  # noqa: E501 - one shell line
