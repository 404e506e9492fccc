"""Give a container the cards: its configuration's lines, and a restart where only that makes them true."""

import base64
import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import ctx_state, host

from gpubox.hypervisor import incus, last_words, nodes, proxmox_config
from gpubox.hypervisor.cards import Card, Wanted, choose, refuse_shared
from gpubox.hypervisor.kinds import STOP_SECONDS, Kind
from gpubox.hypervisor.passthrough import Gift, faults, gift, new_text, remarks
from gpubox.hypervisor.state import PassthroughState
from gpubox.operations import Commands, operation
from gpubox.support.errors import GpuboxError


@operation()
def passthrough(
    box: Kind,
    look: Callable[[], PassthroughState],
    gpus: Wanted = "all",
    others: Mapping[str, Wanted] | None = None,
    caps: bool = False,
    allow_restart: bool = True,
    to_be_made: bool = False,
) -> Commands:
    """Make a container's devices those that its data names, numbered as the driver that runs now numbers them.

    The configuration is written only when it differs, in one rename; the container is restarted only when it runs
    without what the configuration now says. A container that is down is started.

    + box: the container
    + look: asks for the state of hypervisor and container, anew at each call
    + gpus: `all`, or indices, UUIDs, PCI addresses
    + others: containers that may not have the same cards -> what they have, in the words of `gpus`
    + caps: also /dev/nvidia-caps (MIG, fabric manager)
    + allow_restart: may it be restarted; False: what is pending is reported
    + to_be_made: an earlier operation of the same run makes the container, so that a plan does not find it
    """
    container, found = box.container, look()
    unmade = found.config is None and to_be_made
    unloaded = bool(gpus) and nodes.lacks_unified_memory(found.proc_devices)
    if (unmade or unloaded) and not ctx_state.get().is_executing:
        yield StringCommand("true")  # only counted: an earlier operation changes that, and the run itself asks again
        return
    try:
        given = _given(box, found, gpus, others or {}, caps)
        commands = _configure(box, found, given)
    except GpuboxError as error:
        raise OperationError(f"{container} on {host.name}: {error.message}") from error
    for remark in remarks(box, found):
        _say(remark)
    yield from commands
    if found.state == "stopped":
        reason = last_words.why(found.last_words)
        told = f" ({reason})" if reason else ""
        _say(f"container {container} is down{told}: starting it; a box that this run could not reach needs another run")
        yield _words(box.locked(box.start()))
    else:
        after = look() if commands else found
        pending = faults(after, given)
        if not pending:
            return
        serves = f"; it serves on port {', '.join(map(str, found.inside.ports))}" if found.inside.ports else ""
        if not allow_restart:
            _say(f"pending, not allowed: a restart of container {container}: {_short(pending)}{serves}")
            return
        limit = f"up to {STOP_SECONDS} s for its own shutdown, then it is killed"
        _say(f"restarting container {container} ({limit}): {_short(pending)}{serves}")
        yield _words(box.locked(box.restart(found.unit)))
    yield FunctionCommand(_check, (box, given, look), {})


def _given(box: Kind, found: PassthroughState, gpus: Wanted, others: Mapping[str, Wanted], caps: bool) -> Gift:
    if found.config is None:
        where = box.config_path or "incus list"
        raise GpuboxError(f"there is no container {box.container} ({where})", "one, or `create` in the box's data")
    chosen = choose(found.cards, gpus)
    refuse_shared(box.container, chosen, {name: _theirs(name, found, gpus) for name, gpus in others.items()})
    return gift(box, found, chosen, caps)


def _theirs(name: str, found: PassthroughState, gpus: Wanted) -> list[Card]:
    try:
        return choose(found.cards, gpus)
    except GpuboxError as error:
        raise GpuboxError(f"container {name} beside it: {error.found}", error.needed, error.todo) from error


def _configure(box: Kind, found: PassthroughState, given: Gift) -> list[StringCommand]:
    old = found.config or ""
    if box.name == "incus":
        every = given.cards == tuple(card for card in found.cards if card.minor is not None)
        changes = incus.changes(box.container, old, given.cards, given.caps, every)
        for words in changes:
            if words[:4] == ["incus", "config", "device", "remove"] or words[-1] == "none":
                _say(f"container {box.container}: its device {words[5]} is taken out: it is not given that")
        return [_words(words) for words in changes]
    text = new_text(box, found, given)
    if box.name == "proxmox":
        for line in proxmox_config.changed_lines(old, text):
            _say(f"{box.config_path}: {line}")
    return [_replace(box, old, text)] if text != old else []


def _replace(box: Kind, old: str, text: str) -> StringCommand:
    """Write beside, flush, rename: at any moment the file is the old one or the new one, whole.

    Mode and owner are kept (Proxmox' cluster file system sets its own). Refused when the file is not the one that was
    read; on Proxmox under the lock that its own tools take.
    """
    path, new, folder = (shlex.quote(p) for p in (box.config_path, f"{box.config_path}.gpubox-new", _folder(box)))
    digest = hashlib.sha256(_bytes(old)).hexdigest()
    keep = "" if box.name == "proxmox" else f"chmod --reference={path} {new} && chown --reference={path} {new} && "
    text_in = (
        f'[ "$(sha256sum <{path})" = "{digest}  -" ] || {{ echo {path} changed: run again >&2; exit 1; }}; '
        f"base64 -d >{new} && {keep}sync {new} && mv -fT {new} {path} && sync {folder}"
    )
    lock = ["flock", "-w", "30", f"/run/lock/lxc/pve-config-{box.container}.lock"] if box.name == "proxmox" else []
    words = [*lock, "/bin/sh", "-c", text_in]
    return StringCommand(*map(QuoteString, words), _stdin=base64.b64encode(_bytes(text)).decode())


def _folder(box: Kind) -> str:
    return box.config_path.rpartition("/")[0]


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _words(words: Sequence[str]) -> StringCommand:
    return StringCommand(*map(QuoteString, words))


def _check(state: State, host: Host, box: Kind, given: Gift, look: Callable[[], PassthroughState]) -> bool:
    """After the restart the container must have the nodes: if not, this host fails, with what is wrong."""
    try:
        found = look()
        left = faults(found, given) if found.state == "running" else [f"it is {found.state}"]
    except GpuboxError as error:
        left = [error.message]
    if left:
        logger.error(f"{host.print_prefix}container {box.container} after its restart: {'; '.join(left)}")
    return not left


def _short(lines: Sequence[str]) -> str:
    return "; ".join(lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "")


def _say(message: str) -> None:
    logger.warning(f"{host.print_prefix}{message}")
