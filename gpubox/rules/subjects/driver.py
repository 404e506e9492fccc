"""The driver that a reboot would bring."""

from collections.abc import Iterator

from gpubox.hypervisor import modules
from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule


@rule(
    "driver-on-disk",
    "warning",
    "The driver that runs is the one that the next boot brings.",
    "https://github.com/badbread/crumbvms/issues/395 (unattended-upgrades; all went well up to the next restart)",
    needs=("facts",),
)
def on_disk(c: Context) -> Iterator[Told]:
    """On bare metal and in a VM; a container's kernel is its hypervisor's, which is looked at by
    itself."""
    if not c.gpu or c.place == "lxc" or c.facts is None:
        return
    if told := modules.other_on_disk(c.driver, c.facts.module_on_disk):
        todo = (
            "reboot at a time that suits, then run the deploy: it brings the libraries of that version and holds them"
        )
        yield Told(told, "the same version in memory and on disk", todo)
    elif waiting := modules.is_for_driver(c.facts.reboot_for):
        found = f"a reboot is asked for by {', '.join(waiting)}"
        yield Told(
            found, "none that waits", "reboot at a time that suits; see that the new kernel has the driver", "info"
        )
