"""The command line: one file a command, named like it; each defines `command`. Loaded only when asked for."""

import importlib
import pkgutil

import click
from typing_extensions import override


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


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpubox")
def main() -> None:
    """Take a GPU box from a bare system to a tuned, verified, measured LLM endpoint, and keep it there.

    Exit codes: 0 clean or done, 1 failed or findings, 2 could not tell.
    """
