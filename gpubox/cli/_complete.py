"""What the shell offers after Tab, where that is data."""

from pathlib import Path

import click


def hosts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of boxes of the inventory that the command line names so far; an inventory with mistakes offers nothing."""
    from gpubox import inventory
    from gpubox.support.errors import GpuboxError

    given = context.params.get("path") or context.params.get("inventory")
    try:
        names = inventory.read(Path(given) if given else inventory.default_path()).boxes
    except GpuboxError:
        return []
    return [name for name in names if name.startswith(incomplete)]
