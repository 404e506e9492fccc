"""Step `server`: a release out of the profile, looked at while the old one serves; then one switch, and one restart."""

from functools import partial

from gpubox.deploy import step
from gpubox.facts.once import read
from gpubox.facts.service import ServiceFact
from gpubox.inventory import Box
from gpubox.operations.files import owned_files
from gpubox.operations.release import checked, switched
from gpubox.server.service import UNIT, checks_of, service_of


@step("Server")
def server(box: Box) -> None:
    """Serve what the box's profile says; a release that is current already is left alone."""
    wish, link = service_of(box), box.settings.venv_path
    paths = [file.path for file in wish.release_files]
    look = partial(read, ServiceFact, unit=UNIT, paths=paths, venv_link=link)
    digest = wish.release.digest

    owned_files(name=f"Release {digest}", files=wish.release_files, look=lambda: look().files)
    checked(name="Checks before a switch", digest=digest, arguments=checks_of(box, wish), look=look)
    switched(name=f"{UNIT} runs it", unit=UNIT, digest=digest, venv_link=link, probe=wish.probe, look=look)
