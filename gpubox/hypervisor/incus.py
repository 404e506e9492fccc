"""An Incus container's devices: what its own command line must be told, from what `incus query` says."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gpubox.hypervisor.cards import Card, pci
from gpubox.hypervisor.nodes import Node
from gpubox.support.errors import GpuboxError
from gpubox.support.reading import reader

MODE = "0666"
"""Incus makes the nodes of a gpu device 0660 unless told (its documentation of gpu_physical): users are kept out."""


def changes(name: str, instance: str, cards: Sequence[Card], caps: Sequence[Node], every: bool) -> list[list[str]]:
    """The commands, as words, that give the container `name` exactly these cards; none when it is so.

    `instance` is the JSON of /1.0/instances/NAME. A gpu device brings the card's node and the control nodes
    (nvidiactl, nvidia-uvm, ...); the `caps` nodes are unix-char devices. `every`: the cards are all of the machine.
    Errors: it is not JSON, or not a container; a device passes every card where only some are wanted.
    """
    found = _instance(instance)
    local, expanded = found.get("devices", {}), found.get("expanded_devices", found.get("devices", {}))
    config = ["incus", "config"]
    commands: list[list[str]] = []
    lacking = {card.pci for card in cards}
    for device, values in sorted(expanded.items()):
        if values.get("type") != "gpu" or values.get("gputype", "physical") != "physical":
            continue
        address = pci(values.get("pci", ""))
        if address and address not in {card.pci for card in cards}:
            commands.append(_removal(name, device, device in local))
            continue
        if not address:
            _refuse_partial(device, values, every)
        lacking -= {address} if address else lacking
        if values.get("mode") != MODE:
            verb = "set" if device in local else "override"
            commands.append([*config, "device", verb, name, device, f"mode={MODE}"])
    for address in sorted(lacking):
        device = f"gpu-{re.sub(r'[^0-9a-f]', '-', address)}"
        commands.append(
            [*config, "device", "add", name, device, "gpu", "gputype=physical", f"pci={address}", f"mode={MODE}"]
        )
    commands += _character_devices(name, local, expanded, caps)
    if _unprivileged(found) and found.get("config", {}).get("limits.kernel.memlock") != "unlimited":
        commands.append([*config, "set", name, "limits.kernel.memlock=unlimited"])
    return commands


def unprivileged(instance: str) -> bool:
    """Whether the container maps its root to another user (Incus' default)."""
    return _unprivileged(_instance(instance))


@reader("what incus query said of the container")
def _instance(text: str) -> dict[str, Any]:
    found = json.loads(text)
    devices = [found.get(name, {}) for name in ("devices", "expanded_devices")]
    tables = [*devices, *(one for table in devices for one in table.values())]
    tables += [found.get(name, {}) for name in ("config", "expanded_config")]
    if not all(isinstance(table, dict) for table in tables):
        raise TypeError("devices and config are no tables")
    values = [value for table in tables for value in table.values() if not isinstance(value, dict)]
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a value of a device or of the config is no text")
    if found.get("type", "container") != "container":
        raise GpuboxError(f"{found.get('name')} is a {found.get('type')}", "a container")
    return dict(found)


def _unprivileged(found: dict[str, Any]) -> bool:
    config = found.get("expanded_config", found.get("config", {}))
    return str(config.get("security.privileged", "false")).lower() not in {"true", "1", "yes", "on"}


def _removal(name: str, device: str, local: bool) -> list[str]:
    """A profile's device is masked in the instance: the profile is not ours."""
    if local:
        return ["incus", "config", "device", "remove", name, device]
    return ["incus", "config", "device", "add", name, device, "none"]


def _refuse_partial(device: str, values: dict[str, str], every: bool) -> None:
    """A gpu device without a PCI address passes every card: right for all of them, wrong for some."""
    selected = [key for key in ("id", "vendorid", "productid") if values.get(key)]
    if selected or not every:
        raise GpuboxError(
            f"device {device} of the container selects cards by {', '.join(selected) or 'nothing: it passes all'}",
            "gpu devices that name one PCI address each",
            f"incus config device remove CONTAINER {device}; the next run adds what is wanted",
        )


def _character_devices(name: str, local: Any, expanded: Any, nodes: Sequence[Node]) -> list[list[str]]:
    """The caps nodes; where the data asks for none, those that are there are a person's own and stay."""
    if not nodes:
        return []
    wanted = {node.path for node in nodes}
    present = {
        values.get("source", values.get("path", "")): device
        for device, values in sorted(expanded.items())
        if values.get("type") == "unix-char"
    }
    gone = [path for path in present if path.startswith("/dev/nvidia-caps/") and path not in wanted]
    commands = [_removal(name, present[path], present[path] in local) for path in gone]
    for path in sorted(wanted - set(present)):
        device, add = path.rpartition("/")[2], ["incus", "config", "device", "add", name]
        commands.append([*add, device, "unix-char", f"source={path}", f"path={path}", f"mode={MODE}", "required=false"])
    return commands
