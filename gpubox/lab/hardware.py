"""The hardware that is not there: described in hardware/*.yaml, stood in at the kernel's real paths."""

import json
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpubox.lab import paths
from gpubox.lab.files_io import overwrite
from gpubox.support.errors import GpuboxError

DEFAULT = "rtx-pro-6000-x8"
_NVIDIA_MAJOR = 195
# where Linux gives out dynamic character majors, from the top down
_DYNAMIC = [*range(511, 383, -1), *range(254, 233, -1)]


class Driver(BaseModel):
    """The kernel driver: its version, the newest CUDA it serves, and whether its modules are the open ones."""

    model_config = ConfigDict(extra="forbid")
    version: str
    cuda: str
    kernel_module: Literal["open", "proprietary"]


class Links(BaseModel):
    """How cards see each other in `topo -m`, by whether they hang on one NUMA node."""

    model_config = ConfigDict(extra="forbid")
    same_node: str
    other_node: str


class Hardware(BaseModel):
    """One described machine. `card` holds what all cards share, in the field names of `nvidia-smi --query-gpu`."""

    model_config = ConfigDict(extra="forbid")
    description: str
    driver: Driver
    majors: dict[str, int] = Field(
        description="wanted dynamic majors; the next free one is taken where this kernel uses it"
    )
    card: dict[str, Any]
    cards: list[dict[str, Any]] = Field(min_length=1)
    links: Links
    p2p_read: str
    q_x: str = Field(default="", description="file with the recorded `nvidia-smi -q -x`")
    broken: dict[int, str] = Field(
        default_factory=dict, description="card -> what nvidia-smi says for each value of it"
    )


def names() -> list[str]:
    """The described machines."""
    return sorted(p.stem for p in _folder().glob("*.yaml"))


def load(name: str) -> Hardware:
    """One description; an unknown name or a wrong file is a GpuboxError."""
    path = _folder() / f"{name}.yaml"
    if not path.is_file():
        raise GpuboxError(f"no hardware called {name!r}", f"one of: {', '.join(names())}", f"or describe it in {path}")
    try:
        described = yaml.safe_load(path.read_text())
        if like := described.pop("like", None):  # a whole machine with little of its own
            described = {**load(like).model_dump(), **described}
        return Hardware.model_validate(described)
    except (ValidationError, yaml.YAMLError) as error:
        raise GpuboxError(f"{path}: {error}") from None


def install(name: str, boxed_off: frozenset[int] = frozenset()) -> bool:
    """Make the live state say `name`; majors in `boxed_off` are not given out. Whether anything changed."""
    hardware = load(name)
    kernel = without_nvidia(Path("/proc/devices").read_text())
    now = current()
    wanted = now["majors"] if now.get("name") == name and not boxed_off else hardware.majors
    return _write(paths.hardware(), name, hardware, kernel, choose_majors(wanted, used_majors(kernel) | boxed_off))


def install_for(box: str, name: str, driver: str | None = None) -> bool:
    """Make one box see `name` instead, with the lab's majors, and with another driver version if one is given."""
    hardware = load(name)
    if driver is not None:
        hardware = hardware.model_copy(update={"driver": hardware.driver.model_copy(update={"version": driver})})
    kernel = without_nvidia(Path("/proc/devices").read_text())
    return _write(paths.hardware_of(box), name, hardware, kernel, current()["majors"])


def _write(live: Path, name: str, hardware: Hardware, kernel: str, majors: dict[str, int]) -> bool:
    changed = overwrite(live / "live.json", json.dumps(live_state(name, hardware, majors), indent=1))
    changed |= overwrite(live / "proc-devices", proc_devices(kernel, majors))
    changed |= overwrite(live / "nodes", node_list(len(hardware.cards), majors))
    changed |= overwrite(live / "proc-driver/nvidia/version", driver_text(hardware.driver))
    for module in ("nvidia", "nvidia_modeset", "nvidia_uvm"):
        changed |= overwrite(live / f"sys-module/{module}/version", f"{hardware.driver.version}\n")
    parameter = live / "sys-module/nvidia_uvm/parameters/uvm_disable_hmm"
    if not parameter.exists():  # its value belongs to the "driver": see files/pve/lab-driver
        changed |= overwrite(parameter, "N\n")
    return changed | _cards_in_proc(live, hardware)


def current() -> dict[str, Any]:
    """The live state: name, driver, majors, cards; empty before the first `up`."""
    path = paths.hardware() / "live.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def remajor() -> dict[str, int]:
    """New dynamic majors, as after a driver reload or a kernel update; what they are now."""
    now = current()
    install(now["name"], frozenset(now["majors"].values()))
    majors: dict[str, int] = current()["majors"]
    return majors


def choose_majors(wanted: dict[str, int], taken: set[int] | frozenset[int]) -> dict[str, int]:
    """A free dynamic major for each driver: the wanted one, or the next below that is neither taken nor wanted."""
    chosen: dict[str, int] = {}
    for driver, major in wanted.items():
        free = [m for m in [major, *_DYNAMIC] if m not in taken and m not in chosen.values()]
        kept = [m for m in free if m == major or m not in wanted.values()]
        chosen[driver] = kept[0]
    return chosen


def without_nvidia(devices: str) -> str:
    """/proc/devices without the lines of a real NVIDIA driver: the practice machine has only its own."""
    return "".join(f"{line}\n" for line in devices.splitlines() if "nvidia" not in line)


def used_majors(devices: str) -> set[int]:
    """The character majors that /proc/devices lists."""
    return {int(line.split()[0]) for line in devices.partition("Block devices:")[0].splitlines()[1:] if line.strip()}


def proc_devices(kernel: str, majors: dict[str, int]) -> str:
    """The kernel's /proc/devices with the NVIDIA driver's lines in it, in the kernel's order and widths."""
    head, _, blocks = kernel.partition("\nBlock devices:")
    lines = head.strip("\n").splitlines()[1:]
    lines += [f"{_NVIDIA_MAJOR:3} {name}" for name in ("nvidia", "nvidiactl", "nvidia-modeset")]
    lines += [f"{major:3} {name}" for name, major in majors.items()]
    ordered = sorted(lines, key=lambda line: int(line.split()[0]))
    return "\n".join(["Character devices:", *ordered]) + f"\n\nBlock devices:{blocks}"


def node_list(cards: int, majors: dict[str, int]) -> str:
    """The nodes under /dev that a loaded driver has: `name major minor mode`, one a line."""
    nodes = [(f"nvidia{n}", _NVIDIA_MAJOR, n, "666") for n in range(cards)]
    nodes += [("nvidiactl", _NVIDIA_MAJOR, 255, "666"), ("nvidia-modeset", _NVIDIA_MAJOR, 254, "666")]
    nodes += [("nvidia-uvm", majors["nvidia-uvm"], 0, "666"), ("nvidia-uvm-tools", majors["nvidia-uvm"], 1, "666")]
    caps = majors["nvidia-caps"]
    nodes += [("nvidia-caps/nvidia-cap1", caps, 1, "400"), ("nvidia-caps/nvidia-cap2", caps, 2, "444")]
    return "".join(f"{name} {major} {minor} {mode}\n" for name, major, minor, mode in nodes)


def driver_text(driver: Driver) -> str:
    """/proc/driver/nvidia/version as the module prints it."""
    kind = "UNIX Open Kernel Module" if driver.kernel_module == "open" else "UNIX"
    ending = "" if driver.kernel_module == "open" else " Kernel Module"
    return (
        f"NVRM version: NVIDIA {kind} for x86_64{ending}  {driver.version}  Release Build  (stand-in@gpubox-lab)  \n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) \n"
    )


def live_state(name: str, hardware: Hardware, majors: dict[str, int]) -> dict[str, Any]:
    """What nvidia-smi replays: each card with the shared fields filled in."""
    cards = [hardware.card | card | {"minor": minor} for minor, card in enumerate(hardware.cards)]
    for place, word in hardware.broken.items():
        # the driver still knows where the card is, and nothing else of it
        kept = ("pci.bus_id", "minor", "numa")
        cards[place] = {name: value if name in kept else word for name, value in cards[place].items()}
    return {
        "name": name,
        "driver": hardware.driver.version,
        "cuda": hardware.driver.cuda,
        "majors": majors,
        "links": hardware.links.model_dump(),
        "p2p_read": hardware.p2p_read,
        "q_x": (_folder() / hardware.q_x).read_text() if hardware.q_x else "",
        "cards": cards,
    }


def _folder() -> Path:
    return Path(__file__).parent / "hardware"


def _cards_in_proc(live: Path, hardware: Hardware) -> bool:
    """Each card's /proc/driver/nvidia/gpus/ADDRESS/information; addresses of other hardware are removed."""
    folder = live / "proc-driver/nvidia/gpus"
    changed, present = False, set()
    for minor, card in enumerate(hardware.cards):
        merged = hardware.card | card
        address = str(merged["pci.bus_id"]).lower().removeprefix("0000")
        present.add(address)
        text = (
            f"Model: \t\t {merged['name']}\nIRQ:   \t\t {41 + minor}\nGPU UUID: \t {merged['uuid']}\n"
            f"Video BIOS: \t {str(merged.get('vbios_version', '??')).lower()}\nBus Type: \t PCIe\n"
            "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
            f"Bus Location: \t {address}\nDevice Minor: \t {minor}\n"
            f"GPU Firmware: \t {hardware.driver.version}\nGPU Excluded:\t No\n"
        )
        changed |= overwrite(folder / address / "information", text)
    for stale in [p for p in folder.iterdir() if p.name not in present]:
        (stale / "information").unlink(missing_ok=True)
        stale.rmdir()
        changed = True
    return changed
