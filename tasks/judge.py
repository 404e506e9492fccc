"""Step `judge`: the rules again, with what only the box itself can say."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.live import LiveFacts
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.judged import judged


@step("Rules")
def judge(box: Box) -> None:
    """Stop before anything large is installed where a rule says that it cannot work here."""
    judged(name=f"{box.profile.name} can work here", box=box, look=partial(read, LiveFacts))
