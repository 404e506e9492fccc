"""Step `server`: unit and environment file out of the profile; enabled, started, restarted only on change."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.once import read
from gpubox.facts.service import ServiceFact
from gpubox.inventory import Box
from gpubox.operations.changes import Changes
from gpubox.operations.files import owned_files
from gpubox.operations.service import service
from gpubox.server.service import UNIT, service_of


@step("Server")
def server(box: Box, changed: Changes) -> None:
    """Serve what the box's profile says. `changed`: what this run did to the packages and the model under it."""
    wish = service_of(box)
    look = partial(read, ServiceFact, unit=UNIT, paths=[file.path for file in wish.files])

    owned_files(name="Unit and environment", files=wish.files, look=lambda: look().files)
    service(
        name=f"{UNIT} runs it",
        unit=UNIT,
        argv=wish.argv,
        release=wish.release,
        look=look,
        changed=changed.did_change,
    )
