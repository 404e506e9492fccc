"""The command line: one file a command, named like it; each defines `command`. Loaded only when asked for."""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any

import click
from typing_extensions import override

from gpubox.cli import _errors


class _Lazy(click.Group):
    """Finds commands by the names of this package's modules, so that `gpubox lab` never imports the bench."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    @override
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's, with errors in one form for all commands (gpubox.cli._errors)."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        words = list(sys.argv[1:] if args is None else args)
        as_json = _errors.wants_json(words)
        try:
            code = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        except (click.ClickException, click.Abort, KeyboardInterrupt) as error:
            _errors.end(error, as_json)
        except Exception as error:
            _errors.internal(error, as_json)
            raise
        sys.exit(code if isinstance(code, int) else 0)


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpubox")
def main() -> None:
    """Take a GPU box from a bare system to a tuned, verified, measured LLM endpoint, and keep it there.

    Exit codes: 0 clean or done, 1 failed or findings, 2 could not tell. With --json an error is an object on stdout:
    {"error": {"found", "needed", "todo"}, "exit_code"}.
    """
