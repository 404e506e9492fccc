"""Device nodes of the NVIDIA driver: which there must be, with which numbers, and what is wrong with those there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubox.support.errors import GpuboxError
from gpubox.support.reading import reader

CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""Nodes that every CUDA process needs beside those of its cards (libnvidia-container's list of control devices)."""

LIST = """for n in /dev/nvidia* /dev/nvidia-caps/*; do [ ! -c "$n" ] || stat -c '%n %t %T %a' "$n"; done"""
"""Shell text that prints what `parse` reads."""


@dataclass(frozen=True, order=True)
class Node:
    """A character device: its path, and the numbers that the kernel knows it by."""

    path: str
    major: int
    minor: int
    mode: int = 0o666

    @property
    def numbers(self) -> str:
        """As `195:0`, the notation of the device cgroup."""
        return f"{self.major}:{self.minor}"


@reader("/proc/devices")
def majors(proc_devices: str) -> dict[str, int]:
    """Name -> major number of the character devices in the text of /proc/devices."""
    characters = proc_devices.partition("Block devices")[0]
    return {name: int(number) for number, name in re.findall(r"^\s*(\d+)\s+(\S+)\s*$", characters, re.M)}


def needed(proc_devices: str, card_minors: Iterable[int]) -> list[Node]:
    """The nodes of the cards and the control nodes, numbered by /proc/devices. Error: the driver is not loaded."""
    known = majors(proc_devices)
    static = _static_major(known)
    if static is None or "nvidia-uvm" not in known:
        missing = "nvidia" if static is None else "nvidia-uvm"
        raise GpuboxError(
            f"/proc/devices has no {missing}: its kernel module is not loaded",
            "the NVIDIA driver loaded on the hypervisor",
            f"modprobe {missing}, then run again; else install the driver or reboot into a kernel that has it",
        )
    cards = [Node(f"/dev/nvidia{minor}", static, minor) for minor in sorted(card_minors)]
    uvm = known["nvidia-uvm"]
    return [
        *cards,
        Node("/dev/nvidiactl", static, 255),
        Node("/dev/nvidia-uvm", uvm, 0),
        Node("/dev/nvidia-uvm-tools", uvm, 1),
        Node("/dev/nvidia-modeset", static, 254),
    ]


def lacks_unified_memory(proc_devices: str) -> bool:
    """Whether the driver is loaded but for nvidia-uvm, as after a boot: the first program that uses CUDA loads it."""
    known = majors(proc_devices)
    return _static_major(known) is not None and "nvidia-uvm" not in known


def caps(proc_devices: str, present: Mapping[str, Node]) -> list[Node]:
    """The capability nodes (MIG, fabric manager) that are there, numbered by /proc/devices. Error: there are none."""
    major = majors(proc_devices).get("nvidia-caps")
    found = [node for path, node in sorted(present.items()) if path.startswith("/dev/nvidia-caps/")]
    if major is None or not found:
        raise GpuboxError(
            "there are no nodes below /dev/nvidia-caps",
            "MIG or the fabric manager in use, which make them",
            "nvidia-smi mig -lci; without either, leave gpu_caps out",
        )
    return [Node(node.path, major, node.minor, node.mode) for node in found]


def wrong(wanted: Iterable[Node], present: Mapping[str, Node]) -> list[str]:
    """One line for each wanted node that is missing, has other numbers than the kernel's, or too tight a mode."""
    return [
        f"{node.path} {_fault(node, present.get(node.path))}" for node in wanted if _fault(node, present.get(node.path))
    ]


@reader("device nodes")
def parse(listing: str) -> dict[str, Node]:
    """Nodes by path from lines `PATH MAJOR MINOR MODE`, numbers as stat prints them (%t %T hexadecimal, %a octal)."""
    nodes = {}
    for line in listing.splitlines():
        path, major, minor, mode = line.split()[:4]
        nodes[path] = Node(path, int(major, 16), int(minor, 16), int(mode, 8))
    return nodes


def _static_major(known: Mapping[str, int]) -> int | None:
    """195; its name in /proc/devices has changed with the driver (nvidia-frontend before 545, then nvidia)."""
    return next((known[name] for name in ("nvidia", "nvidia-frontend", "nvidiactl") if name in known), None)


def _fault(wanted: Node, present: Node | None) -> str:
    if present is None:
        return "is missing"
    if present.numbers != wanted.numbers:
        return f"is {present.numbers}, the kernel's is {wanted.numbers}"
    if present.mode & wanted.mode != wanted.mode:
        return f"has mode {present.mode:o}, not {wanted.mode:o}: users are kept out"
    return ""
