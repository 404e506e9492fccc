"""OS packages through apt."""

from collections.abc import Callable, Mapping, Sequence

from pyinfra import host, logger

from gpubox.apt import explain
from gpubox.facts.apt import AptFact, Carried, Simulation
from gpubox.facts.once import read
from gpubox.facts.packages import Package
from gpubox.operations import Commands, operation
from gpubox.operations.apt import installation, update
from gpubox.support.errors import GpuboxError


@operation()
def installed(names: Sequence[str], look: Callable[[], Mapping[str, Package]], sources: Sequence[str] = ()) -> Commands:
    """
    Install the packages that are not wholly installed. One that is named here and held is moved, and that is said.

    + names: package names, or `name=version`
    + look: gives name -> Package of the host
    + sources: URIs that they come from: one that cannot be read is an error; of others it is reported
    """
    packages = look()
    missing = [name for name in names if not is_met(name, packages)]
    if missing:
        if held := _held(missing, packages):
            logger.warning(f"{host.print_prefix}{', '.join(held)}: held by hand, but the data asks for another state")
        yield update(sources)
        yield installation(f"installing {len(missing)} packages", *_options(missing, packages), *missing)


def foresee(names: Sequence[str], packages: Mapping[str, Package]) -> None:
    """In the prepare phase: ask apt's resolver, and end the run with its own text before anything is touched.

    What the run may still change is no reason to end it: a package that no source carries yet, a dpkg to be repaired.

    + names: as for `installed`
    + packages: name -> Package of the host
    """
    missing = [name for name in names if not is_met(name, packages)]
    if not missing:
        return
    state = read(AptFact, keyrings=())
    if state.unsettled or state.interrupted or state.unmet:
        return
    text = explain.resolver(read(Simulation, names=missing, options=_options(missing, packages)))
    lacking = explain.not_installable(text)
    if text and (not lacking or set(lacking) <= read(Carried, names=lacking)):
        raise GpuboxError(
            f"{host.name}: apt cannot install {', '.join(missing)}:\n{text}",
            "packages that fit together",
            "`apt-mark showhold` and `apt-cache policy PACKAGE` show the holds and pins there; nothing was changed",
        )


def is_met(wish: str, packages: Mapping[str, Package]) -> bool:
    """Whether `name` or `name=version` is wholly installed."""
    name, _, version = wish.partition("=")
    package = packages.get(name)
    return package is not None and package.installed and version in {"", package.version}


def _options(wishes: Sequence[str], packages: Mapping[str, Package]) -> list[str]:
    held = ["--allow-change-held-packages"] if _held(wishes, packages) else []
    exact = ["--allow-downgrades"] if any("=" in wish for wish in wishes) else []
    return held + exact


def _held(wishes: Sequence[str], packages: Mapping[str, Package]) -> list[str]:
    names = (wish.partition("=")[0] for wish in wishes)
    return [name for name in names if name in packages and packages[name].held]
