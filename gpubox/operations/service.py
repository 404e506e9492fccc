"""Start the model server, and restart it only when what it runs from is not what is wished."""

from collections.abc import Callable

from pyinfra import state
from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.state import StateStage

from gpubox.facts.service import ServiceState
from gpubox.operations import Commands


@operation()
def service(
    unit: str, argv: list[str], release: str, look: Callable[[], ServiceState], changed: Callable[[], bool]
) -> Commands:
    """
    Enable and start the unit; restart it when its process differs from argv or release, or something under it changed.

    + unit: as `sglang.service`
    + argv: the command line that the process must have
    + release: the stamp that its environment must hold
    + look: gives the ServiceState of the host
    + changed: whether this run changed what the process has loaded (asked only while executing)
    """
    present, name = look(), QuoteString(unit)
    if present.properties["LoadState"] != "loaded" or present.properties["NeedDaemonReload"] == "yes":
        yield StringCommand("systemctl daemon-reload")
    if present.properties["UnitFileState"] != "enabled":
        yield StringCommand("systemctl enable --quiet", name)
    executing = state.current_stage == StateStage.Execute
    same = present.running and present.argv == argv and present.release == release
    if not same or (executing and changed()):
        # The start limit counts earlier failures too: clear it, this start is a person's wish.
        yield StringCommand("systemctl reset-failed", name, "2>/dev/null; systemctl restart", name)
