"""How errors end the command line: for people on stderr, and with `--json` as one object on stdout.

    {"error": {"found": "...", "needed": "...", "todo": "..."}, "exit_code": 1}

`found` says what is wrong; `needed` and `todo` may be empty. The exit code of the process is the same number. A command
that has printed its result as JSON prints no such object after it: its result says what is wrong, and so does stderr.
"""

import json
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from gpubox.remote import secrets
from gpubox.support.errors import GpuboxError

_INTERRUPTED = 1


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; what stands behind `--` is for another program."""
    own = words[: words.index("--")] if "--" in words else words
    return "--json" in own


def end(error: BaseException, as_json: bool) -> NoReturn:
    """Say the error and end the process with its exit code."""
    code = _exit_code(error)
    if as_json:
        click.echo(json.dumps({"error": _parts(error), "exit_code": code}, indent=1))
    elif isinstance(error, GpuboxError):
        _show(error)
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        click.echo("Aborted!", err=True)
    sys.exit(code)


def after_result(error: GpuboxError) -> NoReturn:
    """For an error after the result was printed as JSON: on stderr, for people, and the exit code."""
    _show(error)
    sys.exit(error.exit_code)


def _show(error: GpuboxError) -> None:
    click.echo(f"Error: {secrets.shapes(error.message)}", err=True)


def _exit_code(error: BaseException) -> int:
    return error.exit_code if isinstance(error, click.ClickException) else _INTERRUPTED


def _parts(error: BaseException) -> dict[str, str]:
    if isinstance(error, GpuboxError):
        parts = {"found": error.found, "needed": error.needed, "todo": error.todo}
        return {name: secrets.shapes(text) for name, text in parts.items()}
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "gpubox"
        return {"found": error.format_message(), "needed": "a command line that fits", "todo": f"{path} --help"}
    if isinstance(error, click.ClickException):
        return {"found": error.format_message(), "needed": "", "todo": ""}
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return {"found": "interrupted before it was done", "needed": "", "todo": ""}
    what = f"a mistake in gpubox: {type(error).__name__}: {error}"
    return {"found": what, "needed": "", "todo": "report it, with the traceback that stands on stderr"}


def internal(error: Exception, as_json: bool) -> None:
    """For an error that nobody foresaw: with `--json` the object too; the traceback follows."""
    if as_json:
        click.echo(json.dumps({"error": _parts(error), "exit_code": 1}, indent=1))
