"""Keep power limits and clocks of the cards as the data says, where the driver lives."""

from collections.abc import Callable, Mapping

from pyinfra import host, logger
from pyinfra.api import Host, OperationError, QuoteString, State, StringCommand
from pyinfra.api.command import FunctionCommand
from pyinfra.context import ctx_state

from gpubox.facts.card_limits import LimitsState
from gpubox.hypervisor import limits as texts
from gpubox.hypervisor.limits import SCRIPT, UNIT
from gpubox.operations import Commands, operation
from gpubox.operations.files import put
from gpubox.operations.reload import AtRisk, warn
from gpubox.settings.host import CardLimit
from gpubox.support.owned_file import Entry, OwnedFile

_RESTART = StringCommand(
    f"systemctl restart {UNIT} || {{ journalctl -u {UNIT} -n 20 -o cat --no-pager -q >&2; exit 1; }}"
)
"""What the cards said against it is in the journal."""


@operation()
def card_limits(
    limits: Mapping[str, CardLimit],
    there: Callable[[], Mapping[str, Entry]],
    look: Callable[[], LimitsState],
    has_driver: Callable[[], bool],
    at_risk: AtRisk = tuple,
) -> Commands:
    """
    Have the limits set now, at each boot and at each load of the driver; without any, have nothing
    of it.

    + limits: card -> its limits, of the data
    + there: gives path -> Entry for all of gpubox.hypervisor.limits.FILES
    + look: gives the LimitsState; asked only where there is something to do or to compare
    + has_driver: whether the kernel module is this machine's own; in a container it is the
      hypervisor's
    + at_risk: gives docker containers that a reload of systemd may take the cards from
    """
    entries = there()
    if not limits:
        if any(entries[path].kind != "absent" for path in texts.FILES):
            warn(at_risk)
            yield from _removed(look())
        return
    if not has_driver():
        found = "card_limits in the data of a container: the driver is its hypervisor's"
        raise OperationError(f"{host.name}: {found}; needed: the same in the data of the hypervisor")
    state = look()
    if state.trouble and ctx_state.isset() and not ctx_state.get().is_executing:
        yield StringCommand("true")  # only counted: an earlier operation may bring nvidia-smi, and the run asks again
        return
    _refuse(limits, state)
    files = _files(limits)
    differing = [file for file in files if not file.is_at(entries[file.path])]
    for file in differing:
        yield from put(file)
    if entries[SCRIPT].kind != "absent" and any(file.path == SCRIPT for file in differing):
        yield from _loosened(limits, state)
    is_new = any(file.path == texts.UNIT_FILE for file in differing)
    if not state.enabled or state.stale or is_new:
        warn(at_risk)
    if not state.enabled:
        yield StringCommand(f"systemctl enable {UNIT}")  # this makes systemd read the files, too
    elif state.stale or is_new:
        yield StringCommand("systemctl daemon-reload")
    if state.others:
        todo = "take it out there: whichever runs last counts"
        logger.warning(f"{host.print_prefix}{', '.join(state.others)} sets limits of cards, too; {todo}")
    moved = texts.drift(limits, state.cards)
    if moved:
        logger.warning(f"{host.print_prefix}{'; '.join(moved)}")
    if moved or differing or not state.active:
        yield _RESTART
        yield FunctionCommand(_check, (limits, look), {})


def _files(limits: Mapping[str, CardLimit]) -> list[OwnedFile]:
    modes = {SCRIPT: "755"}
    return [OwnedFile(path, text, mode=modes.get(path, "644")) for path, text in texts.texts(limits).items()]


def _refuse(limits: Mapping[str, CardLimit], state: LimitsState) -> None:
    """Before anything is written: a limit that no card here takes."""
    if state.trouble:
        raise OperationError(f"{host.name}: card_limits cannot be compared, nvidia-smi said: {state.trouble[:300]}")
    if wrong := texts.refused(limits, state.cards):
        raise OperationError(f"{host.name}: card_limits: {'; '.join(wrong)}")


def _loosened(limits: Mapping[str, CardLimit], state: LimitsState) -> Commands:
    """What earlier data set and this data no longer names goes back to the card's default."""
    for words in texts.loosening(limits, state.cards):
        # a card without locked clocks refuses to have them reset, which is no fault
        yield StringCommand("nvidia-smi", *(QuoteString(word) for word in words), ">/dev/null 2>&1 || true")


def _removed(state: LimitsState) -> Commands:
    yield from _loosened({}, state)
    yield StringCommand(f"systemctl disable --now {UNIT} 2>/dev/null || true")
    yield StringCommand("rm -f", *(QuoteString(path) for path in texts.FILES))
    yield StringCommand("systemctl daemon-reload")


def _check(state: State, host: Host, limits: Mapping[str, CardLimit], look: Callable[[], LimitsState]) -> bool:
    """nvidia-smi may end well and have changed nothing: the cards themselves are asked."""
    left = texts.drift(limits, look().cards)
    if left:
        logger.error(f"{host.print_prefix}after {UNIT} set them: {'; '.join(left)}")
    return not left
