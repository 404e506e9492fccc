"""What deploy.py needs to know about the host that it runs for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

from pyinfra.api import Inventory as PyinfraInventory
from pyinfra.api import OperationError, deploy
from pyinfra.context import ctx_host, ctx_inventory

from gpubox import rules
from gpubox.hosts import Box, Hypervisor
from gpubox.inventory import BOXES, HYPERVISORS, Inventory, InventoryError, build
from gpubox.support.errors import GpuboxError

P = ParamSpec("P")
R = TypeVar("R")
_built: WeakKeyDictionary[PyinfraInventory, Inventory] = WeakKeyDictionary()


def step(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """pyinfra's `deploy`, with the types of the step itself: its operations stand below `name` in the output."""
    return cast("Callable[[Callable[P, R]], Callable[P, R]]", deploy(name))


def here() -> Box | Hypervisor:
    """The host that the deploy code runs for now, with its settings. Error: mistakes in the data, host in no group."""
    inventory = _inventory(ctx_inventory.get())
    if inventory.problems:
        raise OperationError("\n".join(problem.message for problem in inventory.problems))
    name = ctx_host.get().name
    found = inventory.boxes.get(name) or inventory.hypervisors.get(name)
    if found is None:
        raise GpuboxError(f"{name} is in neither group {BOXES} nor {HYPERVISORS} of the inventory")
    return found


def _inventory(source: PyinfraInventory) -> Inventory:
    if source not in _built:
        built = build(Path("inventory"), _data(source, BOXES), _data(source, HYPERVISORS))
        # Judged here too, because an inventory need not end with `checked(globals())`.
        if errors := rules.errors(finding for box in built.boxes.values() for finding in rules.check(box)):
            built.problems.append(InventoryError(GpuboxError(errors)))
        _built[source] = built
    return _built[source]


def _data(source: PyinfraInventory, group: str) -> dict[str, dict[str, Any]]:
    return {host.name: host.data.dict() for host in source if group in host.groups}
