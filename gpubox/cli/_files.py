"""Kinds of options that name files: those that are written are tried before anything long begins."""

from pathlib import Path
from typing import Any

import click
from typing_extensions import override

from gpubox.support import files


class OutputFile(click.Path):
    """A file to write. Error, before the command does anything: it could not be written."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        files.check_file(path, _named(param))
        return path


class OutputFolder(click.Path):
    """A folder to write into; it and those above it are made. Error, before the command does anything: as above."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)
        files.check_folder(path, _named(param))
        return path


def _named(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None and param.opts else ""
