"""`gpubox catalog`: what the catalogue holds, and how a new SGLang release gets into it."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table


@click.group()
def command() -> None:
    """Facts about SGLang releases, cards and models."""


@command.command("list")
def list_() -> None:
    """Show the releases, with what changes between them."""
    from gpubox.catalog import release

    table = Table("SGLang", "flags", "torch", "flashinfer", "transformers", "autotune of flashinfer_cutlass")
    for version in release.versions():
        found = release.load(version)
        pins = [found.pins.get(name, "-") for name in ("torch", "flashinfer-python", "transformers")]
        table.add_row(version, str(len(found.flags)), *pins, found.autotune.state)
    Console().print(table)


@command.command()
@click.argument("version")
@click.option(
    "--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A wheel that is here already."
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when the committed file is not what the wheel says.")
def extract(version: str, wheel: Path | None, check: bool) -> None:
    """Read the real wheel of VERSION from PyPI and write its entry. Nothing is imported or installed."""
    from gpubox.catalog import extract as reader
    from gpubox.catalog import release
    from gpubox.catalog.wheel import Wheel, fetch
    from gpubox.support import files
    from gpubox.support.errors import GpuboxError

    if "/" in version:
        raise GpuboxError(f"version {version!r}", "one as 0.5.23")
    target = release.FOLDER / f"{version}.json"
    if not check:
        files.check_file(target)
    found = reader.release(Wheel(wheel) if wheel else fetch(version))
    if found.sglang != version:
        raise GpuboxError(f"the wheel is of SGLang {found.sglang}", f"a wheel of {version}")
    text = release.dumped(found)
    same = target.is_file() and target.read_text() == text
    if check and not same:
        raise GpuboxError(f"{target} is not what the wheel says", "", f"gpubox catalog extract {version}, and review")
    if not same:
        files.write(target, text)
    click.echo(f"{target}: {len(found.flags)} flags, {'as committed' if same else 'written: review the diff'}")
    for line in found.open:
        click.echo(f"  not readable without running it: {line}")
