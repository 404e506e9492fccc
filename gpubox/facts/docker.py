"""Docker containers that a reload of systemd may take the cards from. One command, asked only
before a reload."""

from typing_extensions import override

from gpubox.driver import docker
from gpubox.facts.answers import Fact


class DockerAtRisk(Fact[list[str]]):
    """Their names; empty: none, or no docker."""

    @staticmethod
    @override
    def default() -> list[str]:
        """What pyinfra takes where the command printed nothing."""
        return []

    @override
    def command(self) -> str:
        return f"( {docker.QUESTION} ) 2>/dev/null || true"

    @override
    def process(self, output: list[str]) -> list[str]:
        return docker.at_risk("\n".join(output))
