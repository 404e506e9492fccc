"""Step `ready`: the server gives real answers, the known one where the profile has it; else the last good one does."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.once import read
from gpubox.facts.ready import ReadyFact
from gpubox.facts.release import main_process
from gpubox.facts.service import ServiceFact
from gpubox.hosts import Box
from gpubox.operations.ready import Wanted
from gpubox.operations.ready import ready as wait
from gpubox.server import outside
from gpubox.server.service import UNIT, service_of


@step("Ready")
def ready(box: Box) -> None:
    """Wait for /health and real completions; end early, with the cause, when the unit fails."""
    wish, link = service_of(box), box.settings.venv_path
    wait(
        name="A real answer",
        wanted=Wanted(UNIT, wish.release.digest, link, wish.probe, partial(outside.ask, box)),
        look=partial(read, ServiceFact, unit=UNIT, paths=[file.path for file in wish.release_files], venv_link=link),
        answer=partial(read, ReadyFact, arguments={**wish.probe, **main_process(wish.release.digest)}),
    )
