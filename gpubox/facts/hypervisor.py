"""What a hypervisor and one of its containers are like: everything that the passthrough step decides on."""

import re
import shlex
from dataclasses import dataclass
from typing import Literal

from pyinfra.api.facts import FactBase
from typing_extensions import override

from gpubox.errors import CannotTellError
from gpubox.hypervisor import nodes, probe
from gpubox.hypervisor.lxc_config import Cgroup
from gpubox.hypervisor.nodes import Node

State = Literal["running", "stopped", "absent"]


@dataclass(frozen=True)
class InContainer:
    """A device node as the container's root sees it: its numbers, and whether the device cgroup lets it be opened."""

    node: Node
    denied: bool


@dataclass(frozen=True)
class Hypervisor:
    """The hypervisor and one container of it, read in one command. What is absent is None or empty, never a guess."""

    proc_devices: str
    """Text of /proc/devices."""
    nodes: dict[str, Node]
    """Character devices /dev/nvidia* and below /dev/nvidia-caps, by path."""
    card_minors: list[int]
    """Minor numbers of the cards: from /proc/driver/nvidia/gpus, else from the nodes."""
    driver: str | None
    """Version of the loaded kernel module, as 580.95.05; None: not loaded."""
    cgroup: Cgroup
    """The version whose device rules the kernel enforces here."""
    config_path: str
    config: str | None
    """Text of the container's configuration; None: there is no such container."""
    state: State
    live: dict[str, InContainer]
    """Device nodes inside the running container, by path."""
    unit: bool
    """The container runs as systemd unit lxc@NAME.service."""


class HypervisorState(FactBase[Hypervisor]):
    """One composite fact: the hypervisor, and the container `container` on it (plain LXC)."""

    @override
    def command(self, container: str) -> str:
        return probe.script(_questions(container))

    @override
    def process(self, output: list[str]) -> Hypervisor:
        found = probe.answers(output)
        config = found["config"].expect(0, 44, what="container's configuration")
        state = _state(found["state"], config_there=found["config"].rc == 0)
        present = nodes.parse(found["nodes"].expect(0, what="device nodes"))
        return Hypervisor(
            proc_devices=found["devices"].expect(0, what="/proc/devices"),
            nodes=present,
            card_minors=_card_minors(found["minors"].text, present),
            driver=_driver_version(found["driver"].text),
            cgroup="v1" if found["cgroup"].yes(what="/proc/self/cgroup") else "v2",
            config_path=found["path"].text,
            config=config if found["config"].rc == 0 else None,
            state=state,
            live=_live(found["live"]) if state == "running" else {},
            unit=found["unit"].yes(what="systemd unit of the container", no=(3, 4, 127)),
        )


def lxc_config_path(container: str) -> str:
    """Where plain LXC keeps the configuration of `container`."""
    return f"/var/lib/lxc/{container}/config"


def _questions(container: str) -> dict[str, str]:
    """Exit code 44 is ours: the file is not there. Every other code than those expected is "cannot tell"."""
    name, path = shlex.quote(container), lxc_config_path(container)
    file = shlex.quote(path)
    attach = f"lxc-attach -n {name} --clear-env -- /bin/sh -c {shlex.quote(_OPEN_EACH)}"
    return {
        "devices": "cat /proc/devices",
        "nodes": _LIST_NODES,
        "minors": "sed -n 's/^Device Minor:[[:space:]]*//p' /proc/driver/nvidia/gpus/*/information",
        "driver": "cat /proc/driver/nvidia/version",
        "cgroup": "grep -E '^[0-9]+:([^:]*,)?devices(,[^:]*)?:' /proc/self/cgroup",
        "path": f"printf %s {file}",
        "config": f"if [ -e {file} ]; then cat {file}; else (exit 44); fi",
        "state": f"lxc-info -n {name} -sH",
        "unit": f"systemctl is-active --quiet lxc@{name}.service",
        "live": f'[ "$(lxc-info -n {name} -sH)" = RUNNING ] && {attach}',
    }


def _state(answer: probe.Answer, config_there: bool) -> State:
    if not config_there:
        return "absent"
    text = answer.expect(0, what="state of the container (lxc-info)").strip()
    if text not in {"RUNNING", "STOPPED"}:
        raise CannotTellError(f"the container is {text}", "RUNNING or STOPPED", "wait until it has settled; run again")
    return "running" if text == "RUNNING" else "stopped"


def _driver_version(text: str) -> str | None:
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.M)
    return found.group(1) if found else None


def _card_minors(information: str, present: dict[str, Node]) -> list[int]:
    told = [int(line) for line in information.split() if line.isdigit()]
    return sorted(told) or sorted(node.minor for path, node in present.items() if path[11:].isdigit())


def _live(answer: probe.Answer) -> dict[str, InContainer]:
    lines = answer.expect(0, what="device nodes inside the container").splitlines()
    seen = {}
    for line in lines:
        numbers, _, message = line.partition("|")
        for path, node in nodes.parse(numbers).items():
            seen[path] = InContainer(node, "not permitted" in message or "denied" in message)
    return seen


_LIST_NODES = """for n in /dev/nvidia* /dev/nvidia-caps/*; do [ ! -c "$n" ] || stat -c '%n %t %T %a' "$n"; done"""
# opening is the only honest question: a node that is there may still be denied by the device cgroup (EPERM)
_OPEN_EACH = (
    """for n in /dev/nvidia* /dev/nvidia-caps/*; do [ -c "$n" ] || continue; """
    """m=$( { : <>"$n"; } 2>&1 ); printf '%s|%s\\n' "$(stat -c '%n %t %T %a' "$n")" "$m"; done"""
)
