"""What the rules judge a box by, from the box itself. One command."""

from typing_extensions import override

from gpubox.facts.answers import Fact, answers, script
from gpubox.onboard import probe, questions
from gpubox.rules.facts import BoxFacts


class LiveFacts(Fact[BoxFacts]):
    """BoxFacts as the box has them now."""

    @override
    def command(self) -> str:
        return script(questions.FACTS)

    @override
    def process(self, output: list[str]) -> BoxFacts:
        return probe.read_facts(answers(output))
