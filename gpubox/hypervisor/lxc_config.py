"""A plain LXC container's configuration: our block of lines in it; every other line stays as it is."""

import re
from collections.abc import Iterable
from typing import Literal

from gpubox.hypervisor.nodes import Node
from gpubox.support.errors import GpuboxError

Cgroup = Literal["v1", "v2"]

BEGIN = "# BEGIN gpubox: passthrough (written by gpubox; edits between BEGIN and END are lost)"
END = "# END gpubox: passthrough"
_BEGINS = re.compile(r"^# BEGIN gpubox: passthrough\b.*$", re.M)
_BLOCK = re.compile(r"^# BEGIN gpubox: passthrough\b.*?^# END gpubox: passthrough[^\n]*\n?", re.M | re.S)


def with_passthrough(text: str, nodes: Iterable[Node], cgroup: Cgroup, extra: Iterable[str] = ()) -> str:
    """The configuration with our block as it should be: in place if there is one, else at the end.

    `extra` lines end the block. Error: a block that has no end, or more than one block: a person must look.
    """
    block = "\n".join([BEGIN, *_rules(nodes, cgroup), *extra, END]) + "\n"
    blocks = _BLOCK.findall(text)
    if len(_BEGINS.findall(text)) != len(blocks) or len(blocks) > 1:
        raise GpuboxError(
            "the container's configuration holds a broken or repeated gpubox block",
            f"one pair of lines '{BEGIN[:28]} ...' and '{END}', or none",
            "delete the block's lines from the file; the next run writes it anew",
        )
    if blocks:
        return _BLOCK.sub(lambda _: block, text)
    return text + ("\n" if text and not text.endswith("\n") else "") + block


def outside(text: str) -> str:
    """The lines that are not ours."""
    return _BLOCK.sub("", text)


def stale_lines(text: str, known_majors: Iterable[int]) -> list[str]:
    """Lines of the user's own that allow a character major which the kernel does not have (P03: hard-coded majors)."""
    known = set(known_majors)
    rule = re.compile(r"^[ \t]*lxc\.cgroup2?\.devices\.allow[ \t]*[=:][ \t]*c[ \t]+(\d+):\S+.*$", re.M)
    return [found.group().strip() for found in rule.finditer(outside(text)) if int(found.group(1)) not in known]


def mounts(text: str, path: str) -> bool:
    """Whether a line of the user's own mounts `path`."""
    return bool(re.search(rf"^\s*lxc\.mount\.entry\s*[=:]\s*{re.escape(path)}\s", outside(text), re.M))


def _rules(nodes: Iterable[Node], cgroup: Cgroup) -> list[str]:
    """`optional`: a card that is gone must not keep the container from starting; the live check reports it."""
    nodes = list(nodes)
    key = "lxc.cgroup.devices.allow" if cgroup == "v1" else "lxc.cgroup2.devices.allow"
    allow = [f"{key} = c {node.numbers} rwm" for node in nodes]
    mounts = [
        f"lxc.mount.entry = {node.path} {node.path.removeprefix('/')} none bind,optional,create=file 0 0"
        for node in nodes
    ]
    return allow + mounts
