"""Take the place of a server that runs by hand with the same flags: ended once, right before the unit starts."""

from collections.abc import Callable

from pyinfra.api import operation

from gpubox.facts.handover import Running, command
from gpubox.operations import Commands


@operation()
def handed_over(flags: list[str], unit: str, look: Callable[[], Running]) -> Commands:
    """
    End the server of these flags that is not the unit's; any other is left alone.

    + flags: the words after the launcher, as the unit has them
    + unit: as `sglang.service`
    + look: gives what runs
    """
    if look().pids:
        yield command("end", flags, unit)
