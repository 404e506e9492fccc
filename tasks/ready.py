"""Step `ready`: the server gives a real answer, the known one where the profile has it."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.once import read
from gpubox.facts.ready import ReadyFact
from gpubox.inventory import Box
from gpubox.operations.ready import ready as wait
from gpubox.server.service import probe_arguments


@step("Ready")
def ready(box: Box) -> None:
    """Wait for /health and one real completion; end early, with the cause, when the unit fails."""
    arguments = probe_arguments(box)
    wait(name="A real answer", arguments=arguments, look=partial(read, ReadyFact, arguments=arguments))
