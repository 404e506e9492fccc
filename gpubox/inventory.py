"""Name -> address and settings: the one door to hosts for the deploy, the tests and the command line alike."""

import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from gpubox import paths, profile, stack
from gpubox.data import validated
from gpubox.errors import GpuboxError
from gpubox.profile import Profile
from gpubox.settings import BoxSettings, HypervisorSettings
from gpubox.stack import Stack

BOXES, HYPERVISORS = "gpu_boxes", "hypervisors"
_RUN_NAME = "gpubox_inventory"


@dataclass(frozen=True)
class Box:
    """A GPU box with everything that is wished for it."""

    name: str
    settings: BoxSettings
    profile: Profile
    stack: Stack
    connection: Mapping[str, Any] = field(default_factory=dict)
    """pyinfra's own data of the host: ssh_hostname, ssh_user, ssh_key, ..., and global arguments as _sudo."""

    @property
    def address(self) -> str:
        """Where ssh reaches it."""
        return str(self.connection.get("ssh_hostname", self.name))


@dataclass(frozen=True)
class Hypervisor:
    """A machine that holds boxes as containers."""

    name: str
    settings: HypervisorSettings
    boxes: tuple[Box, ...] = ()
    connection: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Inventory:
    """All hosts of one inventory file, and every mistake found in it."""

    path: Path
    boxes: dict[str, Box] = field(default_factory=dict)
    hypervisors: dict[str, Hypervisor] = field(default_factory=dict)
    problems: list[GpuboxError] = field(default_factory=list)

    def box(self, name: str) -> Box:
        """The box `name`. Error: the known names are listed."""
        if name not in self.boxes:
            known = ", ".join(self.boxes) or "none there"
            raise GpuboxError(f"no GPU box {name!r} in {self.path}", f"one of: {known}")
        return self.boxes[name]


def default_path() -> Path:
    """The inventory that is used where none is named: the practice machine's."""
    return paths.root() / "inventory" / "lxc.py"


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
    except Exception as error:
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
    try:
        wish = profile.load(settings.profile)
        return Box(name, settings, wish, stack.load(wish.stack), _connection(data))
    except GpuboxError as error:
        raise GpuboxError(f"{where}: {error.message}") from error


def build(
    path: Path, boxes: Mapping[str, Mapping[str, Any]], hypervisors: Mapping[str, Mapping[str, Any]]
) -> Inventory:
    """The inventory out of merged data, name -> data. Mistakes are collected in `problems`, `path` names the file."""
    inventory = Inventory(path)
    for name, data in boxes.items():
        with _collecting(inventory):
            inventory.boxes[name] = box_of(name, data, f"{path}: {name}")
    for name, data in hypervisors.items():
        with _collecting(inventory):
            settings = validated(HypervisorSettings, _own(data), f"{path}: {name}")
            held = tuple(box for box in inventory.boxes.values() if box.settings.hypervisor == name)
            inventory.hypervisors[name] = Hypervisor(name, settings, held, _connection(data))
    for box in inventory.boxes.values():
        if box.settings.hypervisor not in {None, *hypervisors}:
            message = f"{path}: {box.name}: no hypervisor {box.settings.hypervisor!r}"
            inventory.problems.append(GpuboxError(message, f"one of: {', '.join(hypervisors) or 'none there'}"))
    return inventory


def _inventory(path: Path, variables: dict[str, Any]) -> Inventory:
    data = _host_data(path, variables)
    boxes, hypervisors = _hosts(variables, BOXES), _hosts(variables, HYPERVISORS)
    inventory = build(path, {name: data[name] for name in boxes}, {name: data[name] for name in hypervisors})
    strays = sorted(set(data) - set(boxes) - set(hypervisors))
    if strays:
        inventory.problems.append(GpuboxError(f"{path}: {', '.join(strays)} in neither {BOXES} nor {HYPERVISORS}"))
    return inventory


@contextmanager
def _collecting(inventory: Inventory) -> Iterator[None]:
    try:
        yield
    except GpuboxError as problem:
        inventory.problems.append(problem)


def _hosts(variables: dict[str, Any], group: str) -> dict[str, dict[str, Any]]:
    """Name -> own data. pyinfra writes a group as [host] or ([host], data), a host as its name or (name, data)."""
    hosts, shared = _split(variables.get(group, []), {})
    return {name: {**shared, **own} for name, own in (_split(host, {}) for host in hosts)}


def _split(value: Any, default: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return value if isinstance(value, tuple) and len(value) == 2 else (value, default)


def _host_data(path: Path, variables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Merged data of every host, as pyinfra merges it: group_data/all.py, then its groups', then its own."""
    groups = [key for key, value in variables.items() if _is_group(key, value)]
    files = _group_data(path)
    merged: dict[str, dict[str, Any]] = {}
    for group in groups:
        for name in _hosts(variables, group):
            merged.setdefault(name, dict(files.get("all", {}))).update(files.get(group, {}))
    for group in groups:
        for name, own in _hosts(variables, group).items():
            merged[name].update(own)
    return merged


def _is_group(key: str, value: Any) -> bool:
    hosts = _split(value, {})[0]
    return not key.startswith("_") and isinstance(hosts, list | tuple) and not isinstance(hosts, str) and bool(hosts)


def _group_data(path: Path) -> dict[str, dict[str, Any]]:
    """Group -> data. pyinfra silently passes over YAML beside its .py files, so that is an error here."""
    values: dict[str, dict[str, Any]] = {}
    for folder in dict.fromkeys((paths.root() / "group_data", path.resolve().parent / "group_data")):
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
    return key.startswith(("ssh_", "_"))
