"""`gpubox docs`: the pages that are made from code and data, and whether they are in step with it."""

from pathlib import Path

import click

from gpubox.cli._files import OutputFolder


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a page is out of step.")
@click.option("--output", type=OutputFolder(), help="Default: docs/ of the checkout.")
def command(check: bool, output: Path | None) -> None:
    """Write rules.md, settings.md, pains.md, log.md and flags/ below docs/ of the checkout, or into a folder.

    pains.md is made from the tests of a checkout: an installed gpubox leaves it out.
    """
    from gpubox.pages import make as pages
    from gpubox.support import files, paths
    from gpubox.support.errors import GpuboxError

    if output is None and paths.is_installed():
        raise GpuboxError("an installed gpubox has no docs/", "a folder to write to", "gpubox docs --output FOLDER")
    base = output or paths.root() / "docs"
    wanted = pages.all_pages()
    if not (paths.root() / "tests" / "unit").is_dir():
        del wanted["pains.md"]
        click.echo("pains.md is left out: it is made from the tests of a checkout", err=True)
    there = {
        path.relative_to(base).as_posix(): path.read_text()
        for path in [*base.glob("flags/*.md"), *map(base.joinpath, wanted)]
        if path.is_file()
    }
    stale = sorted(name for name, text in wanted.items() if there.get(name) != text)
    gone = sorted(name for name in {*there} - {*wanted} if there[name].startswith(pages.MADE))
    if check and (stale or gone):
        listed = ", ".join([*stale, *gone])
        raise GpuboxError(f"out of step below {base}: {listed}", "what code and data say", "gpubox docs")
    for name in stale:
        files.make_folder((base / name).parent)
        files.write(base / name, wanted[name])
    for name in gone:
        (base / name).unlink()
    click.echo(f"{len(wanted)} pages, {len(stale) + len(gone)} written")
