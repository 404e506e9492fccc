"""`gpubox init`: a folder for the boxes of a person, to be kept in git."""

from pathlib import Path

import click


@click.command()
@click.argument("folder")
def command(folder: str) -> None:
    """Lay out a project in FOLDER, which is new or empty: inventory/, group_data/, profiles/, deploy.py, tests/.

    gpubox reads the inventory, the group data, profiles and stacks of the folder that it is run from, then its own.
    Exit codes: 0 made, 1 FOLDER holds something or cannot be made.
    """
    from gpubox.onboard import layout
    from gpubox.support.errors import GpuboxError

    if not folder.strip():
        raise GpuboxError("FOLDER is empty", "the name of a new or an empty folder", "gpubox init boxes")
    for name in layout.create(Path(folder)):
        click.echo(f"{folder.rstrip('/')}/{name}")
    where = "" if Path(folder).resolve() == Path.cwd() else f"cd {folder} && "
    click.echo(f"next: {where}gpubox onboard ADDRESS --name NAME")
