"""Read what a host said. A line that nobody foresaw is "cannot tell", with the line, and never a bare error of Python.

A login that prints a banner, a transfer that was cut, a program of another version: none of them is an answer. Two
doors, so that no reader needs a `try` of its own: `@reader("device nodes")` on a function that takes text, and
gpubox.facts.answers.Fact as the base of every fact.
"""

import json
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from gpubox.support.errors import CannotTellError

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")

FOREIGN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What a reader raises over a text that is not what it reads."""
NEEDED = "what that command prints on a Linux host; a login shell there that prints nothing by itself"
TODO = "run again; if it stays, log in there and see what the shell prints before anything was asked"
READERS: dict[str, Callable[..., object]] = {}
"""Module and name -> every function that was made a reader, for the test that feeds them nonsense."""
_SHOWN = 120


def reader(what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function whose first text (str, bytes or lines) is what a host said. `what`: names it in errors.

    Error: cannot tell, with the line, wherever the function itself would raise one of FOREIGN.
    """

    def decorate(read: Callable[P, T]) -> Callable[P, T]:
        @wraps(read)
        def told(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(*args, **kwargs)
            except FOREIGN as error:
                place = next((n for n, value in enumerate(args) if is_text(value)), None)
                if place is None:
                    raise cannot_tell(what, "", error) from error
                said = as_lines(args[place])

                def again(lines: Sequence[str]) -> object:
                    return read(*args[:place], _like(args[place], lines), *args[place + 1 :], **kwargs)  # type: ignore[arg-type]  # one argument of the same kind

                raise cannot_tell(what, blamed(again, said), error) from error

        READERS[f"{read.__module__}.{read.__name__}"] = told
        return told

    return decorate


def cannot_tell(what: str, line: str, error: Exception) -> CannotTellError:
    """The error for a line that cannot be read. `what`: the question."""
    shown = repr(line[:_SHOWN]) if line else "nothing"
    return CannotTellError(f"{what}: cannot be read: {shown} ({type(error).__name__}: {error})", NEEDED, TODO)


def blamed(read: Callable[[Sequence[str]], object], lines: Sequence[str]) -> str:
    """The line over which `read` fails: the last of the shortest beginning that fails, for a reader of line by line.

    Where already nothing fails (a value that must be there), it is the first line that says something.
    """
    first = next((line for line in lines if line.strip()), "")
    if _fails(read, []):
        return first
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _fails(read, lines[:middle]):
            bad = middle
        else:
            good = middle
    return lines[bad - 1] if lines else first


def json_object(line: str, what: str) -> dict[str, Any]:
    """The JSON object in a line. Error: cannot tell, for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise cannot_tell(what, line, error) from error
    if not isinstance(found, dict):
        raise cannot_tell(what, line, TypeError("no JSON object"))
    return found


class Asked(dict[str, V]):
    """What a host answered, by name. Error: cannot tell, for a name that it did not answer."""

    def __init__(self, what: str, found: dict[str, V]) -> None:
        self.what = what
        super().__init__(found)

    def __missing__(self, name: str) -> V:
        raise CannotTellError(f"{self.what}: no answer about {name!r}", NEEDED, TODO)


def is_text(value: object) -> bool:
    """Whether it is what a host said: text, bytes, or lines."""
    return isinstance(value, (str, bytes)) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def as_lines(said: Any) -> list[str]:
    """The lines of what a host said."""
    if isinstance(said, bytes):
        return said.decode(errors="replace").splitlines()
    return said.splitlines() if isinstance(said, str) else list(said)


def _like(said: object, lines: Sequence[str]) -> object:
    if isinstance(said, list):
        return list(lines)
    text = "".join(f"{line}\n" for line in lines)
    return text.encode() if isinstance(said, bytes) else text


def _fails(read: Callable[[Sequence[str]], object], lines: Sequence[str]) -> bool:
    try:
        read(lines)
    except FOREIGN:
        return True
    except Exception:
        return False
    return False
