"""What a look at a machine shows to be wrong with it, whatever is to be served there."""

from collections.abc import Iterator

from gpubox.driver import nvml
from gpubox.hypervisor import holders, nodes
from gpubox.onboard import hardware
from gpubox.onboard.several import described
from gpubox.onboard.state import Box, Gpus, Hypervisor
from gpubox.rules.finding import Finding, Severity
from gpubox.support.errors import GpuboxError

_SHM_BYTES = 1 << 30
_SEEN = ("seen on the machine itself",)


def findings(name: str, box: Box, above: Hypervisor | None) -> list[Finding]:
    """Worst first. `above`: the hypervisor that holds the box, where it was looked at."""
    found = [*_place(name, box, above), *_gpus(name, box, above), *_machine(name, box)]
    views = [(name, box.gpus), *([(above.hostname, above.gpus)] if above else [])]
    found += hardware.findings(name, views, container=box.where.place == "lxc")
    order: list[Severity] = ["error", "unknown", "warning", "info"]
    return sorted(found, key=lambda finding: order.index(finding.severity))


def source(box: Box, above: Hypervisor | None) -> Gpus:
    """Whose view of the cards counts: the box's own, or before they were passed through, its hypervisor's."""
    return above.gpus if above is not None and not box.gpus.cards and not box.gpus.broken else box.gpus


def silent(box: Box, above: Hypervisor | None) -> str:
    """Why no program could use the cards there; empty: nothing speaks against it."""
    seen = source(box, above)
    if seen.stand_in:
        return "the cards are stand-ins of the practice machine: no driver answers"
    if not seen.cards:
        return seen.trouble
    return f"the driver does not answer: /dev/nvidiactl: {seen.answers}" if seen.answers else ""


def _place(name: str, box: Box, above: Hypervisor | None) -> Iterator[Finding]:
    if box.where.place is None:
        yield _finding(
            "box-place", "unknown", name, box.where.why, "bare metal, a VM, or an LXC container of some hypervisor"
        )
    if box.where.place == "lxc" and above is None:
        todo = "run again with --via ADDRESS of the hypervisor; without it gpubox sets up only what is inside"
        yield _finding("box-hypervisor", "warning", name, "an LXC container: its hypervisor owns cards", "", todo)
    if above is not None and not above.kind:
        yield _finding(
            "box-hypervisor",
            "error",
            name,
            f"{above.hostname} has none of pct, incus and lxc-ls",
            "a hypervisor of Proxmox VE, Incus or LXC",
            "check --via",
        )


def _gpus(name: str, box: Box, above: Hypervisor | None) -> Iterator[Finding]:
    seen = source(box, above)
    if seen.stand_in:
        yield _finding(
            "box-stand-in", "info", name, "cards, driver and nvidia-smi here are stand-ins of the practice machine"
        )
    if not seen.cards:
        if not seen.broken:
            yield _no_cards(name, seen)
        return
    if above is not None and not box.gpus.cards:
        todo = "nothing: the first run of the deploy passes them through"
        yield _finding("box-cards-above", "info", name, f"the container has no cards yet: {box.gpus.trouble}", "", todo)
    if seen.answers and not seen.stand_in:
        yield _finding(
            "box-driver-silent",
            "error",
            name,
            f"/dev/nvidiactl cannot be opened: {seen.answers}",
            "a driver that answers",
            "in a container: its device rules; else dmesg | grep NVRM",
        )
    kinds = {card.name for card in seen.cards if card.name}
    if len(kinds) > 1:
        yield _finding(
            "box-mixed-cards",
            "warning",
            name,
            f"cards of {len(kinds)} kinds: {', '.join(sorted(kinds))}",
            "tensor parallelism wants equal cards: the smallest memory and the oldest kind set the pace",
            "one server for each kind: `gpus` of a container's box names its cards, else CUDA_VISIBLE_DEVICES",
        )
    for card in seen.cards:
        if card.pcie_width and card.pcie_width[1] < card.pcie_width[0]:
            text = f"card {card.index} runs on {card.pcie_width[1]} of {card.pcie_width[0]} PCIe lanes"
            yield _finding("box-pcie-lanes", "warning", name, text, "all lanes", "slot, riser, firmware's bifurcation")
    yield from _nodes(name, box.gpus)


def _no_cards(name: str, seen: Gpus) -> Finding:
    if not seen.pci and seen.driver is None:
        return _finding("box-no-card", "error", name, "no NVIDIA card on the PCI bus, and no driver", "a card")
    if seen.driver is None:
        shown, held = "; ".join(seen.pci), holders.foreign(seen.pci)
        todo = holders.cure(held[0][1]) if held else ""
        lead = f"cards held by {held[0][1]}" if held else "cards without a driver"
        return _finding("box-no-driver", "error", name, f"{lead}: {shown}", "the NVIDIA driver", todo)
    if seen.trouble == "nvidia-smi is not there":
        todo = "the driver's own programs, of exactly the version in /proc/driver/nvidia/version"
        return _finding("box-nvidia-smi", "error", name, seen.trouble, "nvidia-smi that lists the cards", todo)
    told = nvml.explain(seen.trouble)
    found = f"{told.found} ({told.cause})"
    return _finding("box-nvidia-smi", "error", name, found, "nvidia-smi that lists the cards", told.cure)


def _nodes(name: str, gpus: Gpus) -> Iterator[Finding]:
    """Stale major numbers and missing nodes, the commonest trouble after a kernel or driver update."""
    minors = [
        int(path.removeprefix("/dev/nvidia")) for path in gpus.nodes if path.removeprefix("/dev/nvidia").isdigit()
    ]
    if not minors:
        return
    try:
        wrong = nodes.wrong(nodes.needed(gpus.proc_devices, minors), gpus.nodes)
    except GpuboxError as error:
        wrong = [error.found]
    for line in wrong:
        todo = (
            "run the deploy: its hypervisor step makes and passes them; without a hypervisor: nvidia-modprobe -u -c 0"
        )
        yield _finding("box-nodes", "error", name, line, "the node as /proc/devices numbers it", todo)


def _machine(name: str, box: Box) -> Iterator[Finding]:
    for line in box.apt:
        todo = "repair it first: every step that installs something goes through apt"
        yield _finding("box-apt", "warning", name, line, "apt and dpkg without complaint", todo)
    for server in box.servers:
        if server.held:
            found = f"process {server.pid} is a model server in {server.held}: that is left alone, and not adopted"
            todo = "stop it there before the deploy: it has the cards, and maybe the port"
            yield _finding("box-server-held", "warning", name, found, "", todo)
    if len(box.by_hand) > 1:
        found = f"{len(box.by_hand)} model servers: {'; '.join(map(described, box.by_hand))}"
        todo = "--server PID says which to adopt; those that are not adopted keep running as they are"
        yield _finding("box-servers", "info", name, found, "one for this box", todo)
    if len(box.gpus.cards) > 1 and (box.shm or 0) < _SHM_BYTES:
        found = f"shared memory (/dev/shm) of {(box.shm or 0) >> 20} MiB"
        yield _finding("box-shm", "warning", name, found, "at least 1 GiB: NCCL's transport without peer-to-peer")
    if box.architecture and box.architecture != "x86_64":
        found, todo = f"a processor of {box.architecture}", "no stack for it exists yet"
        yield _finding("box-architecture", "error", name, found, "x86_64: stacks are locked for it alone", todo)
    if box.distribution and not box.distribution.startswith(("debian", "ubuntu")):
        found = f"{box.os} ({box.distribution})"
        yield _finding("box-distribution", "error", name, found, "Debian or Ubuntu: gpubox installs with apt")


def _finding(rule: str, severity: Severity, host: str, found: str, needed: str = "", todo: str = "") -> Finding:
    return Finding(rule, severity, host, found, needed, todo, _SEEN)
