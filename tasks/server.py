"""Step `server`: a release out of the profile, looked at while the old one serves; then one switch, and one restart."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.docker import DockerAtRisk
from gpubox.facts.handover import HandoverFact, Running
from gpubox.facts.once import read
from gpubox.facts.service import ServiceFact
from gpubox.hosts import Box
from gpubox.operations.files import owned_files
from gpubox.operations.release import checked, switched
from gpubox.remote.handover import LAUNCHER
from gpubox.server.service import UNIT, checks_of, service_of


@step("Server")
def server(box: Box) -> None:
    """Serve what the box's profile says; a release that is current already is left alone."""
    wish, link = service_of(box), box.settings.venv_path
    paths = [file.path for file in wish.release_files]
    look = partial(read, ServiceFact, unit=UNIT, paths=paths, venv_link=link)
    digest, flags = wish.release.digest, wish.argv[wish.argv.index(LAUNCHER) + 1 :]

    def replaced() -> Running:
        return Running() if look().serves(digest) else read(HandoverFact, flags=flags, unit=UNIT)

    owned_files(name=f"Release {digest}", files=wish.release_files, look=lambda: look().files)
    checked(name="Checks before a switch", digest=digest, arguments=checks_of(box, wish), look=look, replaced=replaced)
    switched(
        name=f"{UNIT} runs it",
        unit=UNIT,
        digest=digest,
        venv_link=link,
        probe=wish.probe,
        look=look,
        replaced=replaced,
        flags=flags,
        at_risk=partial(read, DockerAtRisk),
    )
