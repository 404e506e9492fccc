"""Make a box's Python environment what the locks say: uv, the venv, the packages that differ, packages from source."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyinfra import host, logger, state
from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.state import StateStage

from gpubox.facts.venv import UV, Venv, damage, state_command
from gpubox.operations import Commands, operation
from gpubox.operations.progress import shown

_VENV = "venv --quiet --no-project --relocatable --python"  # relocatable: it is built beside, then renamed


@dataclass(frozen=True)
class Wish:
    """A venv as it must be before anything runs from it."""

    path: str
    """Where it lies once it is whole; what lies there is never edited."""
    python: str
    """Version of its Python, as `3.11`."""
    packages: Mapping[str, str]
    """Name -> version of all that is in it."""

    @property
    def beside(self) -> str:
        """Where it is built."""
        return f"{self.path}.new"

    def is_met_by(self, found: Venv) -> bool:
        """Whether `found` is it, with nothing changed since it was made."""
        right = found.kind == "whole" and _fits(found, self.python) and found.packages == self.packages
        return right and found.is_untouched


@operation()
def in_place(
    wish: Wish, is_whole: Callable[[], bool], present: Callable[[], Venv], look: Callable[[], Venv]
) -> Commands:
    """
    Give a venv that was built beside its name. A damaged one of that name goes out of the way in the same moment; a
    process that runs from it keeps what it has loaded, and gpubox.remote.switch sees that it must be restarted.

    + wish: the venv
    + is_whole: whether it lies there as it must
    + present: gives the venv that lies there
    + look: gives the venv beside
    """
    if is_whole():
        return
    if state.current_stage == StateStage.Execute and not wish.is_met_by(look()):
        yield StringCommand("echo", QuoteString(f"{wish.beside} is not what the locks say: run again"), ">&2; exit 1")
        return
    folder, _, name = wish.path.rpartition("/")
    venv, beside, old = (QuoteString(path) for path in (wish.path, wish.beside, f"{folder}/.{name}.gpubox-old"))
    away = StringCommand("rm -rf", old, "&& { test ! -e", venv, "|| mv -T", venv, old, "; }")
    damaged = damage(present())
    if damaged and state.current_stage == StateStage.Execute:
        logger.warning(f"{host.print_prefix}{wish.path} is damaged and is replaced: {'; '.join(damaged)}")
    yield StringCommand(remember(wish.beside, "finished"), "&& sync -f", beside, "&&", away, "&& mv -T", beside, venv)


@operation()
def installer(version: str, requirements: str, look: Callable[[], str]) -> Commands:
    """
    Have uv on the box, in a venv of its own: Debian has none, and its pip refuses the system's Python.

    + version: the exact one
    + requirements: path on the box of a requirements file that pins it, with hashes
    + look: gives the version that is there; empty: none
    """
    if look() == version:
        return
    home = UV.removesuffix("/bin/uv")
    pip = StringCommand(f"{home}/bin/python -m pip install --quiet --require-hashes --disable-pip-version-check -r")
    command = StringCommand("python3 -m venv --clear", home, "&&", pip, QuoteString(requirements))
    yield shown(command, f"installing uv {version}")


@operation()
def environment(path: str, python: str, look: Callable[[], Venv]) -> Commands:
    """
    Have a venv of the right Python. One of another Python, or whose Python does not run, is made anew; what gpubox did
    not make is moved aside, never lost.

    + path: where it lies
    + python: its version, as `3.11`
    + look: gives the present one
    """
    found = look()
    fits = _fits(found, python)
    damaged = found.damaged_count > 0
    if found.kind == "whole" and fits and not found.config_changed and not damaged:
        return
    venv, make = QuoteString(path), StringCommand(UV, _VENV, QuoteString(python))
    if found.kind == "whole" and fits and not damaged:
        yield StringCommand(make, "--allow-existing", venv, "&&", remember(path, "made"))
        return
    if found.kind == "foreign":
        aside = f"{path}.old-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        yield StringCommand("mv -T", venv, QuoteString(aside), "&& echo moved to", QuoteString(aside))
    elif found.kind != "absent":
        yield StringCommand("rm -rf", venv)
    # uv takes another Python of this version where the distribution has none, and that is a download.
    yield shown(StringCommand(make, venv, "&&", remember(path, "made")), f"making a venv of Python {python}")


@dataclass(frozen=True)
class Offer:
    """Where packages come from, besides the index."""

    folder: str
    """On the box: `packages.lock`, and the wheels of this repository."""
    find_links: str | None
    """Page or folder of wheels; the box's own PIP_FIND_LINKS takes its place."""


@operation()
def packages(
    path: str, wanted: Mapping[str, str], kept: frozenset[str], offer: Offer, look: Callable[[], Venv]
) -> Commands:
    """
    Install what differs from the lock, and remove what is not in it.

    + path: the venv
    + wanted: name -> version, all that the lock holds
    + kept: names that may be there besides (built from source)
    + offer: where they come from
    + look: gives the present venv
    """
    found = look()
    # Metadata that was changed is not trusted to say which files to remove: it goes, and the files are written over.
    damaged = [f for n, v in wanted.items() if found.packages.get(n) == v for f in found.changed.get(n, [])]
    extra = sorted(found.packages.keys() - wanted.keys() - kept)
    differing = sorted(n for n, v in wanted.items() if found.packages.get(n) != v or n in found.changed)
    if damaged:
        yield _remove_folders(path, damaged)
    if extra:
        yield StringCommand(_pip("uninstall", path), *(QuoteString(name) for name in extra))
    if differing:
        some = ", ".join(differing[:3]) + (", ..." if len(differing) > 3 else "")
        yield shown(_install(path, offer), f"installing {len(differing)} of {len(wanted)} packages ({some})")
    if extra or differing:
        yield remember(path, "installed", *differing)


def install_from(path: str, package: str, version: str, folder: str) -> StringCommand:
    """Install one wheel out of a folder on the box, over whatever is there of that package."""
    wheel = StringCommand("--no-deps --no-index --reinstall-package", QuoteString(package), "--find-links")
    return StringCommand(_pip("install", path), wheel, QuoteString(folder), QuoteString(f"{package}=={version}"))


def remember(path: str, what: str, *names: str) -> StringCommand:
    """Note in the venv what was done to it: `made`, or `installed` with the names."""
    return StringCommand(state_command(path, what, *names))


def _fits(found: Venv, python: str) -> bool:
    return found.implementation == "CPython" and found.python.rpartition(".")[0] == python


def _install(path: str, offer: Offer) -> StringCommand:
    """Links are added by the shell on the box: only it knows its PIP_FIND_LINKS, which uv does not read."""
    default, folder, lock = offer.find_links or "", offer.folder, f"{offer.folder}/packages.lock"
    return StringCommand(
        *("default=", QuoteString(default), "; set --; for link in ${PIP_FIND_LINKS:-$default}; do "),
        *('set -- "$@" --find-links "$link"; done; ', _pip("install", path), ' "$@" --no-deps --require-hashes'),
        *(" --find-links ", QuoteString(folder), " -r ", QuoteString(lock)),
        _separator="",
    )


def _pip(action: str, path: str) -> StringCommand:
    """Files are copied, not linked to uv's cache: a source patch would else reach into every venv made from it."""
    copy = "--link-mode copy" if action == "install" else ""
    return StringCommand(UV, "pip", action, copy, "--python", QuoteString(f"{path}/bin/python"))


def _remove_folders(path: str, folders: list[str]) -> StringCommand:
    site = StringCommand("cd", QuoteString(f"{path}/lib"), "&& cd python3.*/site-packages && rm -rf --")
    return StringCommand(site, *(QuoteString(folder) for folder in folders))
