"""Have an apt that works: one owner of each source, nobody in the way, a dpkg that is whole; and say why it refused."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from pyinfra import host, logger
from pyinfra.api import Host, QuoteString, State, StringCommand
from pyinfra.api.command import FunctionCommand

from gpubox.apt import explain, sources
from gpubox.facts.apt import HOLDERS, AptState
from gpubox.operations import Commands, operation
from gpubox.operations.files import put
from gpubox.operations.progress import shown
from gpubox.support.owned_file import OwnedFile

ASIDE = "/var/lib/gpubox/aside"
"""On a box: sources that gpubox took out of apt's sight, each with a note at its head."""
LOCK_TIMEOUT_S = 300
"""How long another apt or dpkg is waited for, in seconds."""


@operation()
def one_owner(uri: str, owner: str, own_lists: Sequence[str], look: Callable[[], AptState]) -> Commands:
    """
    Keep other files from naming the source that gpubox owns; what they said is kept aside, never lost.

    + uri: the source
    + owner: the file that may name it
    + own_lists: files that may not be there at all, whatever they name (the package cuda-keyring brings one)
    + look: gives the AptState of the host
    """
    state = look()
    rivals = {*sources.competing(state.sources, uri, owner), *(path for path in own_lists if path in state.sources)}
    for path in sorted(rivals):
        text = state.sources[path]
        yield from put(OwnedFile(f"{ASIDE}/{_stamped(path)}", _noted(path, text, owner)))
        rest = None if path in own_lists else sources.without(path, text, uri)
        if rest is None:
            yield StringCommand("rm -f", QuoteString(path))
        else:
            yield from put(OwnedFile(path, rest))
        logger.info(f"{host.print_prefix}{path}: {uri} is {owner}'s; what stood there is in {ASIDE}")


@operation()
def unlocked(limit_s: int, look: Callable[[], AptState]) -> Commands:
    """
    Wait until no other process holds apt's or dpkg's locks; name it, and fail when the limit is over.

    + limit_s: seconds
    + look: gives the AptState of the host
    """
    holders = look().holders
    if holders:
        who = ", ".join(f"{holder.pid} ({holder.command[:60]})" for holder in holders)
        yield shown(StringCommand(waiting(limit_s)), f"waiting up to {limit_s} s for process {who}", explained)


@operation()
def whole(look: Callable[[], AptState]) -> Commands:
    """
    Complete what an interrupted dpkg left half-way; a package whose files are half there is installed again.

    + look: gives the AptState of the host
    """
    state = look()
    torn = sorted(name for name, letters in state.unsettled.items() if letters[1:2] == "H" or letters.endswith("R"))
    if not (state.unsettled or state.interrupted or state.unmet):
        return
    logger.info(f"{host.print_prefix}dpkg is half-way with {', '.join(sorted(state.unsettled)) or 'its own state'}")
    # A package that cannot be configured yet is no error here: what it needs comes with the commands below.
    yield shown(
        StringCommand("{", waiting(), f"&& {FRONTEND} dpkg --configure -a --force-confold", "|| true; }"), "completing"
    )
    if torn or state.unmet:
        yield update()
    if torn:
        names = [QuoteString(name) for name in torn]
        again = StringCommand(APT, "install --reinstall --no-install-recommends", *names)
        out = StringCommand(f"{FRONTEND} dpkg --remove --force-remove-reinstreq --force-depends", *names)
        # Not on offer any more: then out, so that the rest of apt works; the steps below install what is wished for.
        yield shown(StringCommand(again, "||", out), f"installing {', '.join(torn)} again", explained)
    yield shown(
        StringCommand(APT, "install --fix-broken --no-install-recommends"), "completing dependencies", explained
    )
    yield shown(StringCommand(f"{FRONTEND} dpkg --configure -a --force-confold"), "configuring", explained)


FRONTEND = "DEBIAN_FRONTEND=noninteractive LC_ALL=C"
APT = (
    f"{FRONTEND} apt-get -y -q -o DPkg::Lock::Timeout={LOCK_TIMEOUT_S} -o Dpkg::Options::=--force-confold "
    "-o Acquire::Retries=3"
)
"""Waits for another apt, keeps configuration files that a person edited, tries downloads again."""


def update(ours: Sequence[str] = ()) -> FunctionCommand:
    """Read the package lists. A source that cannot be read is reported; only one of `ours` ends the operation.

    + ours: URIs without which going on is no use
    """
    # The lock of the lists is the one that apt itself does not wait for.
    command = StringCommand("{", waiting(), f"&& {APT} -o APT::Update::Error-Mode=any update; }}")
    return shown(command, "package lists", partial(_updated, tuple(ours)))


def installation(what: str, *words: str) -> FunctionCommand:
    """`apt-get install WORDS`, and when it refuses, why.

    + what: said in the lines, as "installing 3 packages"
    """
    command = StringCommand(APT, "install --no-install-recommends", *(QuoteString(word) for word in words))
    return shown(command, what, explained)


def waiting(limit_s: int = LOCK_TIMEOUT_S) -> str:
    """Shell: wait until nobody holds a lock; ends with 1 and names the holder when the limit is over."""
    refuse = f"E: Could not get lock after {limit_s} s. It is held by process $h"
    return (
        f'( t=0; while h=$({HOLDERS}) && [ -n "$h" ]; do '
        f'if [ $t -ge {limit_s} ]; then echo "{refuse}"; exit 1; fi; '
        'echo "held by process $h"; sleep 1; t=$((t + 1)); done )'
    )


def refused(found: str, needed: str, todo: str) -> FunctionCommand:
    """A command that says why and fails: this host goes no further, the others do."""
    return FunctionCommand(_refuse, (str(explain.Explanation(found, needed, todo)),), {})


def explained(succeeded: bool, output: str) -> bool:
    """For `shown`: when the command failed, say why in three lines."""
    if not succeeded:
        logger.error(f"{host.print_prefix}{explain.explain(output)}")
    return succeeded


def _updated(ours: Sequence[str], succeeded: bool, output: str) -> bool:
    if succeeded:
        return True
    failures = explain.failures(output)
    needed = [failure for failure in failures if any(explain.is_of(failure, uri) for uri in ours)]
    if needed or not failures:
        logger.error(f"{host.print_prefix}{explain.explain(_lines(output, needed) if needed else output)}")
        return False
    for failure in failures:
        logger.warning(f"{host.print_prefix}{failure.url}: {failure.reason}: its old list is used, if there is one")
    return True


def _lines(output: str, failures: Sequence[explain.Failure]) -> str:
    return "\n".join(line for line in output.splitlines() if any(f.url in line or f.reason in line for f in failures))


def _refuse(state: State, host: Host, text: str) -> bool:
    logger.error(f"{host.print_prefix}{text}")
    return False


def _stamped(path: str) -> str:
    return f"{path.rpartition('/')[2]}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def _noted(path: str, text: str, owner: str) -> str:
    return f"# Was {path}. Put aside by gpubox: its source belongs to {owner}, and one URI has one owner.\n{text}"
