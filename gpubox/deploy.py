"""What deploy.py needs to know about the host that it runs for, and the shipped steps for a project's deploy.py."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

from pyinfra.api import Inventory as PyinfraInventory
from pyinfra.api import OperationError, deploy
from pyinfra.context import ctx_host, ctx_inventory

from gpubox import rules
from gpubox.hosts import Box, Hypervisor
from gpubox.inventory import BOXES, HYPERVISORS, Inventory, InventoryError, build
from gpubox.support import paths
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


def run_steps() -> None:
    """Every step of gpubox for the host that the deploy code runs for, in the order of the shipped deploy.py.

    That file is the only place where the order stands; it is executed, not copied into projects, so that an upgrade of
    gpubox is an upgrade of them all. Error: the project has a package named `tasks` of its own.
    """
    _import_steps(paths.root() / "tasks")
    _load("gpubox_steps", paths.root() / "deploy.py", [])


def _import_steps(folder: Path) -> None:
    """Make the shipped steps importable as `tasks`, without making everything beside them importable too."""
    there = sys.modules.get("tasks")
    if there is None:
        sys.modules["tasks"] = _load("tasks", folder / "__init__.py", [str(folder)])
    elif list(there.__path__) != [str(folder)]:
        where = ", ".join(there.__path__)
        raise GpuboxError(f"tasks is imported from {where}", f"gpubox's own steps, {folder}", "rename your package")


def _load(name: str, file: Path, folders: list[str]) -> ModuleType:
    found = spec_from_file_location(name, file, submodule_search_locations=folders or None)
    if found is None or found.loader is None:
        raise GpuboxError(f"{file} cannot be imported", "a Python file", "install gpubox again")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


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
