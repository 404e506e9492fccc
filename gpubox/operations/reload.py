"""Say what it may cost that systemd reads its units anew, before it does."""

from collections.abc import Callable, Sequence

from pyinfra import host, logger

from gpubox.driver import docker

AtRisk = Callable[[], Sequence[str]]
"""Gives the names of docker containers that may lose their cards; asked only where a reload is
due."""


def warn(at_risk: AtRisk) -> None:
    """One line where such containers run. `systemctl enable`, `disable` and `daemon-reload` all
    are reloads."""
    if names := list(at_risk()):
        logger.warning(f"{host.print_prefix}{docker.warning(names)}")
