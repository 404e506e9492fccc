"""Many questions in one shell command: each answer comes back whole, with its exit code, whatever bytes it holds.

A round trip costs more than a line of shell (pyinfra-dev/pyinfra#17).
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from pyinfra.api import FactBase, StringCommand
from typing_extensions import override

from gpubox.remote import secrets
from gpubox.support import reading
from gpubox.support.errors import CannotTellError

T = TypeVar("T")
_last: ContextVar[str] = ContextVar("_last", default="")
"""The question whose answer was read last: over that one a reader fails."""


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


class Answers(reading.Asked[Answer]):
    """Answers by the names of their questions. Error: cannot tell, for one that is not there."""

    def __init__(self, found: Mapping[str, Answer]) -> None:
        super().__init__("what the host said", dict(found))

    @override
    def __getitem__(self, name: str) -> Answer:
        _last.set(name)
        return super().__getitem__(name)


class Fact(FactBase[T]):
    """The base of every fact: output that cannot be read is "cannot tell", with the question and the line."""

    @override
    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "process" in cls.__dict__:
            cls.process = _guarded(cls.__name__, cls.__dict__["process"])  # type: ignore[method-assign]  # the same, with its errors told


def read_answers(what: str, read: Callable[[Mapping[str, Answer]], T], found: Mapping[str, Answer]) -> T:
    """`read(found)`. Error: cannot tell, with the question and the line, for answers that it cannot read.

    + what: names them in errors, as `the state of the box`
    """
    answered = Answers(found)
    token = _last.set("")
    try:
        return read(answered)
    except reading.FOREIGN as error:
        name = _last.get()
        raise reading.cannot_tell(
            f"{what}, {name}" if name else what, secrets.text(_blamed(read, answered, name)), error
        ) from error
    finally:
        _last.reset(token)


def script(questions: Mapping[str, str | StringCommand]) -> str:
    """One POSIX shell script that asks every question (name of letters, digits, -, _ -> shell text).

    It prints `name base64` lines: what a question printed on stdout, a newline, its exit code.
    """
    return "\n".join(["LC_ALL=C; export LC_ALL", *(_ask(name, _text(asked)) for name, asked in questions.items())])


def answers(lines: list[str]) -> dict[str, Answer]:
    """The answers of a script by name. Error: cannot tell, when a line is not an answer."""
    return Answers(dict(_answer(line) for line in lines if line.strip()))


def checked(lines: list[str], **also: int) -> dict[str, Answer]:
    """The answers of a script, each with an exit code that is one: 0, or the other that `also` allows its name.

    Error: cannot tell, for any other code.
    """
    found = answers(lines)
    for name, answer in found.items():
        answer.expect(0, *([also[name]] if name in also else []), what=name)
    return found


def _guarded(name: str, process: Callable[..., T]) -> Callable[..., T]:
    @wraps(process)
    def told(self: object, output: list[str]) -> T:
        token = _last.set("")
        try:
            return process(self, output)
        except reading.FOREIGN as error:
            question = _last.get()
            line = _blamed_output(lambda lines: process(self, list(lines)), output, question)
            raise reading.cannot_tell(f"{name}, {question}" if question else name, secrets.text(line), error) from error
        finally:
            _last.reset(token)

    return told


def _blamed(read: Callable[[Mapping[str, Answer]], object], found: Mapping[str, Answer], name: str) -> str:
    """The line of the answer `name` over which `read` fails."""
    if name not in found:
        return ""
    rc, said = found[name].rc, found[name].text.splitlines()

    def again(lines: Sequence[str]) -> object:
        return read(Answers({**found, name: Answer(rc, "".join(f"{line}\n" for line in lines))}))

    return reading.blamed(again, said)


def _blamed_output(process: Callable[[Sequence[str]], object], output: list[str], question: str) -> str:
    """The line of a fact's output, or of the answer in it to `question`, over which `process` fails."""
    if not question:
        return reading.blamed(process, output)
    found = answers(output)
    if question not in found:
        return ""
    others = [line for line in output if line.partition(" ")[0] != question]
    rc = found[question].rc

    def again(lines: Sequence[str]) -> object:
        said = "".join(f"{line}\n" for line in lines)
        packed = base64.b64encode(f"{said}\n{rc}".encode(errors="surrogateescape")).decode()
        return process([*others, f"{question} {packed}"])

    return reading.blamed(again, found[question].text.splitlines())


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
