"""Name -> address and settings: the one door to hosts for the deploy, the tests and the command line alike."""

import runpy
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from gpubox.hosts import Box, Hypervisor
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings, HypervisorSettings
from gpubox.support import paths
from gpubox.support.data import validated
from gpubox.support.errors import GpuboxError

BOXES, HYPERVISORS = "gpu_boxes", "hypervisors"
_RUN_NAME = "gpubox_inventory"


class InventoryError(GpuboxError):
    """A mistake in an inventory."""

    def __init__(self, error: GpuboxError, host: str = "") -> None:
        self.host = host
        """Whose data it is in; empty: of the file as a whole."""
        super().__init__(error.found, error.needed, error.todo)


@dataclass
class Inventory:
    """All hosts of one inventory file, and every mistake found in it."""

    path: Path
    boxes: dict[str, Box] = field(default_factory=dict)
    hypervisors: dict[str, Hypervisor] = field(default_factory=dict)
    problems: list[InventoryError] = field(default_factory=list)

    def box(self, name: str) -> Box:
        """The box `name`. Error: the known names are listed."""
        if name not in self.boxes:
            known = ", ".join(self.boxes) or "none there"
            raise GpuboxError(f"no GPU box {name!r} in {self.path}", f"one of: {known}")
        return self.boxes[name]


def default_path() -> Path:
    """The inventory that is used where none is named: the project's lxc.py, else the only one that it has.

    Errors: it has none, or several.
    """
    folder = paths.project() / "inventory"
    if (folder / "lxc.py").is_file():
        return folder / "lxc.py"
    found = sorted(path.name for path in folder.glob("*.py") if not path.name.startswith("_"))
    if len(found) > 1:
        todo = f"--inventory inventory/{found[0]}"
        raise GpuboxError(f"{folder} holds several inventories: {', '.join(found)}", "the name of one", todo)
    if not found:
        todo = "gpubox onboard ADDRESS writes one" if folder.is_dir() else "cd into your project; gpubox init makes one"
        raise GpuboxError(f"no inventory in {folder}", "an inventory of a project, or --inventory FILE", todo)
    return folder / found[0]


def load(path: Path | None = None) -> Inventory:
    """The inventory at `path`. Errors: every mistake in it, in one message."""
    inventory = read(path or default_path())
    if inventory.problems:
        raise GpuboxError("\n".join(problem.message for problem in inventory.problems))
    return inventory


def read(path: Path) -> Inventory:
    """The inventory at `path` with its mistakes collected in `problems`; only a file that cannot be run is an error."""
    if not path.is_file():
        raise GpuboxError(f"no inventory {path}", "a pyinfra inventory, as inventory/lxc.py")
    try:
        variables = runpy.run_path(str(path), run_name=_RUN_NAME)
    except (Exception, SystemExit) as error:
        raise GpuboxError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    return _inventory(path, variables)


def checked(variables: dict[str, Any]) -> None:
    """The last line of an inventory file, `checked(globals())`: mistakes end the run before any host is touched.

    Mistakes are settings that cannot be used, and what the rules call an error (gpubox/rules) and nobody overrode.
    """
    if variables.get("__name__") == _RUN_NAME:
        return
    from pyinfra.api.exceptions import PyinfraError  # here: costs half a second that `gpubox check` need not pay

    from gpubox import rules  # here: they judge the boxes of this module

    inventory = _inventory(Path(variables["__file__"]), variables)
    if inventory.problems:
        raise PyinfraError("\n".join(problem.message for problem in inventory.problems))
    findings = [finding for box in inventory.boxes.values() for finding in rules.check(box)]
    rules.report(findings, Console(stderr=True))
    if errors := rules.errors(findings):
        raise PyinfraError(errors)


def box_of(name: str, data: Mapping[str, Any], where: str) -> Box:
    """The box described by a host's merged data. Errors: unknown key, wrong type, missing profile or stack."""
    settings = validated(BoxSettings, _own(data), where)
    if (settings.hypervisor is None) != (settings.container is None):
        raise GpuboxError(f"{where}: only one of hypervisor and container is given", "both (a container) or neither")
    if settings.hypervisor is not None and settings.card_limits:
        raise GpuboxError(
            f"{where}: card_limits in the data of a container",
            f"them in the data of {settings.hypervisor}, which has the driver",
            "move card_limits there",
        )
    try:
        wish = profile.load(settings.profile)
        return Box(name, settings, wish, stack.load(wish.stack), _connection(data))
    except GpuboxError as error:
        raise GpuboxError(f"{where}: {error.found}", error.needed, error.todo) from error


def build(
    path: Path, boxes: Mapping[str, Mapping[str, Any]], hypervisors: Mapping[str, Mapping[str, Any]]
) -> Inventory:
    """The inventory out of merged data, name -> data. Mistakes are collected in `problems`, `path` names the file."""
    inventory = Inventory(path)
    for name, data in boxes.items():
        with _collecting(inventory, name):
            inventory.boxes[name] = box_of(name, data, f"{path}: {name}")
    for name, data in hypervisors.items():
        with _collecting(inventory, name):
            settings = validated(HypervisorSettings, _own(data), f"{path}: {name}")
            for box in [box for box in inventory.boxes.values() if box.settings.hypervisor == name]:
                inventory.boxes[box.name] = replace(box, hypervisor_limits=settings.card_limits)
            held = tuple(box for box in inventory.boxes.values() if box.settings.hypervisor == name)
            inventory.hypervisors[name] = Hypervisor(name, settings, held, _connection(data))
    _check_containers(inventory, list(hypervisors))
    return inventory


def _check_containers(inventory: Inventory, hypervisors: list[str]) -> None:
    """Each is on a hypervisor of the inventory and belongs to one box."""
    owners: dict[tuple[str, str], str] = {}
    for box in inventory.boxes.values():
        holder, container = box.settings.hypervisor, box.settings.container
        if holder is None or container is None:
            continue
        with _collecting(inventory, box.name):
            if holder not in hypervisors:
                message = f"{inventory.path}: {box.name}: no hypervisor {holder!r}"
                raise GpuboxError(message, f"one of: {', '.join(hypervisors) or 'none there'}")
            first = owners.setdefault((holder, container.name), box.name)
            if first != box.name:
                message = f"{inventory.path}: {first} and {box.name} are both container {container.name} of {holder}"
                raise GpuboxError(message, "one box a container", "correct the name of one")


def _inventory(path: Path, variables: dict[str, Any]) -> Inventory:
    problems: list[GpuboxError] = []
    groups = [key for key, value in variables.items() if key in {BOXES, HYPERVISORS} or _is_group(key, value)]
    members = {group: _members(f"{path}: {group}", variables[group], problems) for group in groups}
    shared = {group: _split(variables[group])[1] for group in groups}
    data = _host_data(path, members, shared)
    boxes, hypervisors = members.get(BOXES, {}), members.get(HYPERVISORS, {})
    inventory = build(path, {name: data[name] for name in boxes}, {name: data[name] for name in hypervisors})
    if both := sorted({*boxes} & {*hypervisors}):
        problems.append(GpuboxError(f"{path}: {', '.join(both)} in {BOXES} and in {HYPERVISORS}", "one of the two"))
    if strays := sorted({*data} - {*boxes, *hypervisors}):
        problems.append(GpuboxError(f"{path}: {', '.join(strays)} in neither {BOXES} nor {HYPERVISORS}"))
    if not data and not problems:
        problems.append(GpuboxError(f"{path}: no host in it", f"{BOXES} = [(name, data), ...], as in inventory/lxc.py"))
    inventory.problems[:0] = [InventoryError(problem) for problem in problems]
    return inventory


@contextmanager
def _collecting(inventory: Inventory, host: str) -> Iterator[None]:
    try:
        yield
    except GpuboxError as error:
        inventory.problems.append(InventoryError(error, host))


def _members(where: str, value: Any, problems: list[GpuboxError]) -> dict[str, dict[str, Any]]:
    """Name -> own data. pyinfra writes a group as [host] or ([host], data), a host as its name or (name, data)."""
    hosts, shared = _split(value)  # what is shared: _host_data
    if not isinstance(hosts, list) or not isinstance(shared, dict):
        problems.append(GpuboxError(f"{where} is {value!r}", "a list of hosts, or (list of hosts, data of all)"))
        return {}
    found: dict[str, dict[str, Any]] = {}
    for host in hosts:
        name, own = _split(host)
        if not isinstance(name, str) or not isinstance(own, dict):
            problems.append(GpuboxError(f"{where} holds {host!r}", 'a name, or (name, {"profile": ..., ...})'))
        elif name in found:
            problems.append(GpuboxError(f"{where}: {name} stands there twice", "each host once"))
        else:
            found[name] = own
    return found


def _split(value: Any) -> tuple[Any, Any]:
    return value if isinstance(value, tuple) and len(value) == 2 else (value, {})


def _host_data(
    path: Path, members: dict[str, dict[str, dict[str, Any]]], shared: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Merged data of every host, later ones first, as pyinfra merges it: its own; group_data/NAME.py of the inventory's
    own name; for each of its groups group_data/GROUP.py, then the data in the group itself; the same of `all`.
    """
    files = _group_data(path)
    names = dict.fromkeys(name for hosts in members.values() for name in hosts)
    groups: dict[str, Collection[str]] = {"all": names, **members}
    groups.setdefault(path.stem, names)
    merged: dict[str, dict[str, Any]] = {name: {} for name in names}
    for group, hosts in groups.items():
        for name in hosts:
            merged[name].update({**shared.get(group, {}), **files.get(group, {})})
    for owned in members.values():
        for name, own in owned.items():
            merged[name].update(own)
    return merged


def _is_group(key: str, value: Any) -> bool:
    """As pyinfra sees it: a list of names and tuples."""
    hosts = value[0] if isinstance(value, tuple) and value else value
    return not key.startswith("_") and isinstance(hosts, list) and all(isinstance(host, str | tuple) for host in hosts)


def _group_data(path: Path) -> dict[str, dict[str, Any]]:
    """Group -> data. pyinfra silently passes over YAML beside its .py files, so that is an error here."""
    values: dict[str, dict[str, Any]] = {}
    for folder in dict.fromkeys((paths.project() / "group_data", path.resolve().parent / "group_data")):
        ignored = sorted(p.name for p in folder.glob("*") if p.suffix in {".yaml", ".yml", ".json"})
        if ignored:
            raise GpuboxError(f"{folder} holds {', '.join(ignored)}", "only .py files: pyinfra reads no others")
        for file in sorted(folder.glob("*.py")):
            variables = runpy.run_path(str(file), run_name=_RUN_NAME)
            values.setdefault(file.stem, {}).update(
                {k: v for k, v in variables.items() if not k.startswith("_") and not isinstance(v, ModuleType | type)}
            )
    return values


def _own(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if not _is_connection(key)}


def _connection(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if _is_connection(key)}


def _is_connection(key: str) -> bool:
    return str(key).startswith(("ssh_", "_"))
