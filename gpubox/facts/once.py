"""Read a fact once a phase: pyinfra runs a fact's command at every read, and each costs a round trip (pyinfra#17)."""

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyinfra.api.facts import FactBase
from pyinfra.api.host import Host
from pyinfra.context import ctx_host, ctx_state

T = TypeVar("T")
_memory: WeakKeyDictionary[Host, dict[tuple[object, ...], Any]] = WeakKeyDictionary()


def read(fact: type[FactBase[T]], **arguments: Any) -> T:
    """`host.get_fact`, answered from memory while no operation of this run has changed the host since it was read."""
    return _read((ctx_state.get().current_stage,), fact, arguments)


def read_lasting(fact: type[FactBase[T]], **arguments: Any) -> T:
    """The same over both phases of a run, for what takes a host long to say and nobody else changes meanwhile."""
    return _read((), fact, arguments)


def _read(phase: tuple[object, ...], fact: type[FactBase[T]], arguments: dict[str, Any]) -> T:
    current: Host = ctx_host.get()
    key = (*phase, _changes(current), fact, repr(sorted(arguments.items())))
    remembered = _memory.setdefault(current, {})
    if key not in remembered:
        remembered[key] = current.get_fact(fact, **arguments)
    answer: T = remembered[key]
    return answer


def _changes(current: Host) -> int:
    """How many operations have changed this host so far."""
    metas = (data.operation_meta for data in ctx_state.get().ops[current].values())
    return sum(1 for meta in metas if meta.is_complete() and meta.did_change())
