"""`gpubox docs`: the pages that are made from code and data, and whether they are in step with it."""

import click


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a page is out of step.")
def command(check: bool) -> None:
    """Write docs/rules.md, docs/settings.md, docs/pains.md, docs/log.md and docs/flags/."""
    from gpubox.pages import make as pages
    from gpubox.support import files, paths
    from gpubox.support.errors import GpuboxError

    wanted = pages.all_pages()
    base = paths.root() / "docs"
    there = {
        p.relative_to(base).as_posix(): p.read_text()
        for p in [*base.glob("flags/*.md"), *map(base.joinpath, wanted)]
        if p.is_file()
    }
    stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
    if check and stale:
        raise GpuboxError(f"out of step below docs/: {', '.join(stale)}", "what code and data say", "gpubox docs")
    for name in stale:
        if name not in wanted:
            (base / name).unlink()
            continue
        files.make_folder((base / name).parent)
        files.write(base / name, wanted[name])
    click.echo(f"{len(wanted)} pages, {len(stale)} written")
