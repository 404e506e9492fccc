"""OS packages through apt."""

from collections.abc import Callable, Mapping, Sequence

from pyinfra.api import QuoteString, StringCommand, operation

from gpubox.facts.packages import Package
from gpubox.operations import Commands
from gpubox.operations.progress import shown

APT = (
    "DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "
    "-o Acquire::Retries=3"
)
"""Waits for another apt up to 300 s, keeps configuration files that a person edited, tries downloads again."""


@operation()
def installed(names: Sequence[str], look: Callable[[], Mapping[str, Package]]) -> Commands:
    """
    Install the packages that are not wholly installed.

    + names: package names, or `name=version`
    + look: gives name -> Package of the host
    """
    missing = [name for name in names if not is_met(name, look())]
    if missing:
        yield shown(StringCommand(APT, "update"), "package lists")
        install = StringCommand(APT, "install --no-install-recommends", *(QuoteString(name) for name in missing))
        yield shown(install, f"installing {len(missing)} packages")


def is_met(wish: str, packages: Mapping[str, Package]) -> bool:
    """Whether `name` or `name=version` is wholly installed."""
    name, _, version = wish.partition("=")
    package = packages.get(name)
    return package is not None and package.installed and version in {"", package.version}
