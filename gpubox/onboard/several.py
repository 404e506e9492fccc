"""Several model servers on one box: which of them gpubox takes over, and what becomes of the others."""

from collections.abc import Sequence

from gpubox.onboard import command_line
from gpubox.onboard.state import Server
from gpubox.support.errors import GpuboxError

_NEEDED = "one for this box: gpubox serves one model a box"


def chosen(servers: Sequence[Server], pid: int | None) -> Server:
    """The server to adopt. Errors: several and none named, none of that number, one that shares cards with another.

    + pid: the process that a person named; None: nobody did
    """
    if pid is None and len(servers) == 1:
        return servers[0]
    shown = f"{len(servers)} model servers run there: {'; '.join(map(described, servers))}"
    named = [server for server in servers if server.pid == pid]
    if pid is not None and not named:
        raise GpuboxError(f"no server that could be adopted is process {pid}; {shown}", "one of them", "--server PID")
    if pid is None:
        raise GpuboxError(shown, _NEEDED, _way(servers))
    others = [server for server in servers if server.pid != pid and _share(server, named[0])]
    if others:
        listed = "; ".join(map(described, others))
        raise GpuboxError(
            f"{described(named[0])} shares cards with {listed}", "cards of its own", "stop one of them, or --no-adopt"
        )
    return named[0]


def described(server: Server) -> str:
    """A server in a few words: its process, cards, port and model."""
    try:
        found, _ = command_line.flags(command_line.words(server))
    except GpuboxError:
        found = {}
    known = command_line.catalogued(server.sglang)
    port = command_line.flag(found, known, "port") or 30000
    model = command_line.flag(found, known, "model-path") or found.get("model", "?")
    cards = f"cards {','.join(sorted(server.cards))}" if server.cards else "all cards"
    return f"{server.pid} on {cards}, port {port}, {model}"


def _way(servers: Sequence[Server]) -> str:
    """What to do about several."""
    pairs = [(a, b) for number, a in enumerate(servers) for b in servers[number + 1 :] if _share(a, b)]
    if pairs:
        listed = ", ".join(f"{a.pid} and {b.pid}" for a, b in pairs)
        return f"{listed} share cards: stop one and run this again, or --no-adopt"
    first = servers[0].pid
    return (
        f"--server {first} (or another number) adopts that one; the others stay as they are, on their own cards and "
        "ports, and a container of its own with `gpus` for each is how gpubox serves them too; or --no-adopt"
    )


def _share(one: Server, other: Server) -> bool:
    """Whether two servers have a card in common; where that cannot be told (numbers here, UUIDs there), they may."""
    if one.cards is None or other.cards is None:
        return True
    numbers = {card.isdigit() for card in one.cards | other.cards}
    return len(numbers) > 1 or bool(one.cards & other.cards)
