"""Have the driver's userland in exactly the kernel module's version: installed, pinned, held; or refuse and say why."""

from collections.abc import Callable, Mapping, Sequence

from pyinfra import host, logger
from pyinfra.api import FileUploadCommand, QuoteString, StringCommand

from gpubox.apt import explain, sources
from gpubox.driver import packages as driver
from gpubox.facts.apt import AptState, Simulation
from gpubox.facts.driver import DriverFact, DriverState
from gpubox.facts.packages import Package
from gpubox.operations import Commands, operation
from gpubox.operations.apt import explained, installation, refused, update
from gpubox.operations.files import put
from gpubox.operations.progress import shown
from gpubox.settings.host import RunFile
from gpubox.support.owned_file import OwnedFile

_BESIDE = "/var/lib/gpubox/driver-pins"
"""The pins that are tried before they are put where apt reads them."""
_RUN_FILES = "/var/lib/gpubox/driver"
_RUN_OPTIONS = "--silent --no-kernel-modules --no-questions --no-backup --no-x-check --no-nouveau-check --no-systemd"


@operation()
def non_free(apt: Callable[[], AptState], look: Callable[[], DriverState]) -> Commands:
    """
    Have Debian's contrib and non-free, where its driver packages are; nothing on a distribution that has them already.

    + apt: gives the AptState of the host
    + look: gives the DriverState of the host
    """
    state = apt()
    if not state.distribution.startswith("debian"):
        return
    text = driver.debian_sources(s for path, text in state.sources.items() for s in sources.parse(path, text))
    file, there = OwnedFile(driver.SOURCE_FILE, text), look().files[driver.SOURCE_FILE]
    if text and not file.is_at(there):
        yield from put(file)
    elif not text and there.kind != "absent":
        yield StringCommand("rm -f", driver.SOURCE_FILE)


@operation()
def userland(origin: str, chosen: Sequence[str], uris: Sequence[str], look: Callable[[], DriverState]) -> Commands:
    """
    Install the packages of the driver in the kernel module's version, and pin the whole set to it.

    Nothing is touched but the package lists unless apt offers that version and its resolver agrees.

    + origin: who packs it: `nvidia` or `distribution`
    + chosen: names, with {major} for the major version; empty: those of gpubox.driver.packages.packages
    + uris: sources that must be readable for it
    + look: gives the DriverState of the host
    """
    state = look()
    if state.module is None:
        logger.warning(f"{host.print_prefix}{_NO_MODULE}")
        return
    names = driver.packages(state.distribution, origin, state.module, chosen)
    if not state.locked and not mismatches(state):
        # of NVIDIA's installer, or mounted: it fits, and packages would be put over it
        yield from _pinned(state, names)
        return
    if not (problems := wrong(state, names)):
        return
    logger.info(f"{host.print_prefix}the kernel module is {state.module}: {'; '.join(problems)}")
    yield update(uris)
    state = host.get_fact(DriverFact, names=driver.candidates(chosen))
    version = driver.choose(state.offers, names, state.module or "")
    if version is None or state.module is None:
        yield refused(*no_such_version(state, names))
        return
    yield from _move(state, names, version)


@operation()
def run_file(files: Sequence[RunFile], look: Callable[[], DriverState]) -> Commands:
    """
    Install the userland with NVIDIA's own installer, without kernel modules.

    + files: installers by version; the one of the kernel module's version is taken
    + look: gives the DriverState of the host
    """
    state = look()
    if state.module is None:
        logger.warning(f"{host.print_prefix}{_NO_MODULE}")
        return
    if not (problems := mismatches(state)):
        return
    file = next((each for each in files if each.version == state.module), None)
    if file is None:
        known = ", ".join(each.version for each in files)
        found = f"kernel module {state.module} (/proc/driver/nvidia/version), userland: {'; '.join(problems)}"
        yield refused(
            found,
            f"an installer of {state.module}; driver.runs has: {known}",
            "add it to driver.runs, with its SHA-256",
        )
        return
    if state.locked:
        found = f"{', '.join(sorted(state.locked))} of the driver are installed as packages"
        yield refused(found, "one way of installation", "remove them, or set driver.source to nvidia or distribution")
        return
    place = QuoteString(f"{_RUN_FILES}/{state.module}.run")
    yield StringCommand("mkdir -p -m 700", _RUN_FILES)
    if file.is_local:
        yield FileUploadCommand(file.url, f"{_RUN_FILES}/{state.module}.run")
    else:
        yield shown(StringCommand("curl -fsSL --retry 3 -o", place, QuoteString(file.url)), f"downloading {file.url}")
    check = StringCommand(
        "echo", QuoteString(f"{file.sha256}  {_RUN_FILES}/{state.module}.run"), "| sha256sum --check --quiet"
    )
    yield shown(
        StringCommand(check, "&& sh", place, _RUN_OPTIONS),
        f"installing {state.module} without kernel modules",
        explained,
    )
    yield StringCommand("rm -f", place, "&& /sbin/ldconfig")


@operation()
def held(look: Callable[[], DriverState]) -> Commands:
    """
    Hold every package of the driver's version: no upgrade moves it, by hand or unattended.

    Also daemons and, where the kernel is the box's own, its modules, as far as they are of that version now.

    + look: gives the DriverState of the host
    """
    state = look()
    there = {
        name: package
        for name, package in state.packages.items()
        if package.installed and not (state.in_container and driver.is_kernel_package(name))
    }
    same = {name for name, package in there.items() if driver.upstream(package.version) == state.module}
    free = sorted(name for name in {*same, *state.locked} if not there[name].held)
    if free:
        yield StringCommand("apt-mark hold", *(QuoteString(name) for name in free))


@operation()
def compared(look: Callable[[], DriverState]) -> Commands:
    """
    Compare what programs get with the kernel module, once everything is installed; name both where they differ.

    + look: gives the DriverState of the host
    """
    state = look()
    modules = sorted(name for name, p in state.packages.items() if p.installed and driver.is_kernel_package(name))
    if state.in_container and modules:
        logger.warning(
            f"{host.print_prefix}{', '.join(modules)} is installed in a container, whose kernel is its hypervisor's: "
            "`apt-get purge` it there"
        )
    if state.module is not None and (problems := mismatches(state)):
        found = f"kernel module {state.module} (/proc/driver/nvidia/version), userland: {'; '.join(problems)}"
        yield refused(found, f"a userland of exactly {state.module}", "driver.source, or give the box that version")


def wrong(state: DriverState, names: Sequence[str]) -> list[str]:
    """Why the userland is not what it must be; empty: it is."""
    module = state.module or ""
    missing = [f"{name} is not installed" for name in names if not _is_installed(name, state.packages)]
    other = [
        f"{name} is {p.version}" for name, p in sorted(state.locked.items()) if driver.upstream(p.version) != module
    ]
    pins = [f"{file.path} differs" for file in files(state, names) if not file.is_at(state.files[file.path])]
    return [*missing, *other, *(mismatches(state) if not missing and not other else []), *pins]


def mismatches(state: DriverState) -> list[str]:
    """The libraries that are not of the kernel module's version, each with its own."""
    found = []
    for library in driver.LIBRARIES:
        versions = state.libraries.get(library, [])
        if versions != [state.module]:
            found.append(f"{library} is {' and '.join(versions) or 'not there'}")
    return found


def files(state: DriverState, names: Sequence[str]) -> list[OwnedFile]:
    """What keeps apt from moving the driver."""
    return [
        OwnedFile(driver.PINS, driver.pins(state.module or "", names, state.in_container)),
        OwnedFile(driver.UNATTENDED, driver.unattended()),
    ]


def no_such_version(state: DriverState, names: Sequence[str]) -> tuple[str, str, str]:
    """Found, needed, to do: for a module whose version no source has; both versions are named."""
    offered = "; ".join(f"{name} {', '.join(state.offers.get(name, [])) or 'none'}" for name in names)
    installed = ", ".join(sorted({driver.upstream(package.version) for package in state.locked.values()})) or "none"
    return (
        f"kernel module {state.module} (/proc/driver/nvidia/version), installed: {installed}, on offer: {offered}",
        f"all of {', '.join(names)} in exactly {state.module}; the same major version is not enough",
        "a driver.source that has it (nvidia, distribution, a mirror, run), or another driver on the hypervisor",
    )


_NO_MODULE = (
    "no NVIDIA kernel module here (/proc/driver/nvidia/version): the driver's userland waits for one, "
    "since it must have exactly its version"
)


def _move(state: DriverState, names: Sequence[str], version: str) -> Commands:
    """The set to `version`, after the resolver agreed under the pins that are to be."""
    rest = sorted({*state.locked, *_followers(state, version)} - set(names))
    versions = {name: driver.same(state.offers.get(name, ()), version) or version for name in rest}
    wishes = [*(f"{name}={version}" for name in names), *(f"{name}={versions[name]}" for name in rest)]
    options = ["--allow-downgrades", "--allow-change-held-packages"]
    yield from put(OwnedFile(_BESIDE, driver.pins(state.module or "", names, state.in_container)))
    text = host.get_fact(Simulation, names=wishes, options=[*options, "-o", f"Dir::Etc::Preferences={_BESIDE}"])
    if trouble := explain.resolver(text) or explain.errors(text):
        needed = f"packages that fit to {', '.join(names)} {version}"
        yield refused(
            trouble, needed, "see the holds and pins: `apt-mark showhold`, `apt-cache policy`; nothing was changed"
        )
        return
    yield from _pinned(state, names)
    yield installation(f"installing the userland of {state.module}", *options, *wishes)
    if automatic := [name for name in rest if name in state.automatic]:
        yield StringCommand("apt-mark auto", *(QuoteString(name) for name in automatic), ">/dev/null")


def _followers(state: DriverState, version: str) -> list[str]:
    """Daemons and tools that came in the driver's version and are offered in the new one: held, they would stay."""
    old = {driver.upstream(package.version) for package in state.locked.values()}
    return [
        name
        for name, package in state.packages.items()
        if package.installed and driver.upstream(package.version) in old
        if driver.same(state.offers.get(name, ()), version)
        if not driver.is_kernel_package(name)
    ]


def _pinned(state: DriverState, names: Sequence[str]) -> Commands:
    for file in files(state, names):
        if not file.is_at(state.files[file.path]):
            yield from put(file)


def _is_installed(name: str, packages: Mapping[str, Package]) -> bool:
    return name in packages and packages[name].installed
