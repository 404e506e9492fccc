"""A machine as a card for people: lines of a label and a text, whole at 80 columns, in a pipe, without colour."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from gpubox.nccl.choose import Choice
from gpubox.nccl.recipes import fitting
from gpubox.nccl.topology import Matrix
from gpubox.onboard.findings import source
from gpubox.onboard.state import Box, Card, Gpus, Hypervisor
from gpubox.support.hanging_indent import hanging

_GIB = 1 << 30


def show(name: str, box: Box, above: Hypervisor | None, choice: Choice, console: Console) -> None:
    """Print the machine."""
    console.print(f"[bold]{escape(name)}[/]", highlight=False)
    hanging(console, lines(box, above, choice))


def lines(box: Box, above: Hypervisor | None, choice: Choice) -> Iterator[tuple[str, str]]:
    """Label and text of every line."""
    seen = source(box, above)
    words = {"bare": "bare metal", "lxc": "LXC container", "vm": "virtual machine", None: "cannot tell where"}
    yield "machine", f"{box.hostname}, {words[box.where.place]} ({box.where.why})"
    if above is not None:
        yield "hypervisor", f"{above.hostname}, {above.kind or 'of no known kind'}, {above.os}, kernel {above.kernel}"
    yield "system", f"{box.os}, kernel {box.kernel}, Python {box.python or 'none'}"
    if box.architecture != "x86_64":
        yield "", f"architecture {box.architecture or 'not known'}: gpubox has no stack for it yet"
    yield "processors", f"{box.cores} cores, {max(box.sockets, 1)} socket(s), {box.cpu}"
    limit = f", limited to {_gib(box.memory_limit)}" if box.memory_limit else ""
    shm = _gib(box.shm) if box.shm is not None else "none"
    yield "memory", f"{_gib(box.memory)}{limit}, /dev/shm {shm}"
    for disk in box.disks:
        yield "disk", f"{disk.path}: {_gib(disk.free)} free of {_gib(disk.size)}"
    yield from _gpu_lines(seen, box)
    yield from _links(seen, choice, box.sockets)
    toolkits = [f"{folder}{'' if release else ' (broken)'}" for folder, release in box.toolkits.items()]
    default = f", default {box.toolkit_default}" if box.toolkit_default else ""
    yield "CUDA", f"{', '.join(toolkits) or 'none'}{default}"
    for venv in box.venvs:
        yield "venv", f"{venv.path}: Python {venv.python}, {f'SGLang {venv.sglang}' if venv.sglang else 'no SGLang'}"
    for server in box.servers:
        release = f", release {server.release}" if server.release else ""
        holder = server.held or server.unit or "started by hand"
        yield (
            "serving",
            f"process {server.pid}, {holder}{release}, SGLang {server.sglang or '?'}: {' '.join(server.argv)}",
        )
    for unit in box.units:
        yield "unit", unit
    for user in box.users:
        yield "uses cards", user
    yield "apt", "; ".join(box.apt) or "healthy"


def _gpu_lines(seen: Gpus, box: Box) -> Iterator[tuple[str, str]]:
    licences = {None: "", "NVIDIA": ", proprietary module"}
    module = licences.get(seen.licence, ", open module")
    yield "driver", f"{seen.driver}{module}" if seen.driver else "none"
    if not seen.cards:
        yield "cards", seen.trouble
        for line in seen.pci:
            yield "on PCI", line
    for text, count in Counter(_card(card) for card in seen.cards).items():
        yield "cards", f"{count} x {text}"
    for card in seen.broken:
        yield "broken", f"{card.label}: {card.said}; all else of it is not known"
    if seen is not box.gpus:
        yield "", "as the hypervisor sees them: none in the container yet"
    nodes = Counter(card.numa for card in seen.cards if card.numa is not None)
    if len(nodes) > 1:
        yield "NUMA", ", ".join(f"{count} cards on node {node}" for node, count in sorted(nodes.items()))


def _card(card: Card) -> str:
    power = f", {card.power_limit_w:.0f} W" if card.power_limit_w else ""
    memory = "memory not known" if card.memory_mib is None else f"{card.memory_mib / 1024:.1f} GiB"
    if card.shares_memory:
        memory = "memory shared with the CPU, as /proc/meminfo says"
    capability = card.compute_capability or "not known"
    link = ""
    if card.pcie_generation and card.pcie_width:
        now = f"{card.pcie_generation[1]} x{card.pcie_width[1]}"
        link = f", PCIe {card.pcie_generation[0]} x{card.pcie_width[0]} (now {now})"
    return f"{card.name or 'kind not known'}, {memory}{power}, compute capability {capability}{link}"


def _links(seen: Gpus, choice: Choice, sockets: int) -> Iterator[tuple[str, str]]:
    if len(seen.cards) < 2:
        return
    yield "links", _counted(seen.links)
    yield "peer-to-peer", f"{_counted(seen.p2p)} (as the driver says; not measured)"
    yield "NCCL", f"{choice.words}: {choice.why}" if choice.words else f"cannot tell: {choice.open}"
    if choice.words:
        names = [recipe.name for recipe in fitting("NCCL_P2P_DISABLE" not in choice.environment, max(sockets, 1))]
        yield "", f"choices to measure (docs/nccl.md): {', '.join(names)}"


def _counted(matrix: Matrix | None) -> str:
    if matrix is None:
        return "nvidia-smi does not say"
    pairs = Counter(matrix.between(range(matrix.cards)).values())
    return ", ".join(f"{word} between {count} pairs" for word, count in pairs.most_common())


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB" if size < 100 * _GIB else f"{size / _GIB:,.0f} GiB"
