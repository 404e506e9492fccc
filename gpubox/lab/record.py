"""What the lab was asked for and stands on: written by `up`, read by every other command."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpubox.lab import hardware, network, paths
from gpubox.lab.files_io import write
from gpubox.lab.layers import Stack
from gpubox.lab.releases import DEFAULT


@dataclass(frozen=True)
class Lab:
    """How many GPU boxes, which hardware description, and the layers that new containers stand on."""

    boxes: int
    hardware: str
    box_layers: tuple[str, ...] = ()
    hypervisor_layers: tuple[str, ...] = ()
    overlay: bool = True
    releases: dict[str, str] = field(default_factory=dict)
    """Box -> its Debian release, where it is not the usual one."""
    layers_of_release: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Debian release -> the layers of a box made of it, where it is not the usual one."""

    @property
    def names(self) -> list[str]:
        """The names of the GPU boxes."""
        return list(network.addresses())[1 : self.boxes + 1]

    def release(self, name: str) -> str:
        """The Debian release of a box."""
        return self.releases.get(name, DEFAULT)

    def of_release(self, release: str, *names: str) -> "Lab":
        """The lab with these boxes made of that release."""
        now = {**self.releases, **dict.fromkeys(names, release)}
        return replace(self, releases={name: each for name, each in now.items() if each != DEFAULT})

    def box_stack(self, name: str) -> Stack:
        """What a GPU box stands on."""
        layers = self.layers_of_release.get(self.release(name), self.box_layers)
        return Stack(tuple(paths.base() / layer for layer in layers), self.overlay)

    def hypervisor_stack(self) -> Stack:
        """What pve01 stands on."""
        return Stack(tuple(paths.base() / name for name in self.hypervisor_layers), self.overlay)


def read() -> Lab | None:
    """The lab that is (or was being) built; None where there is none."""
    if not _path().exists():
        return None
    return Lab(**json.loads(_path().read_text()))


def save(lab: Lab) -> None:
    """Remember what the lab is."""
    # without what is empty: a usual lab can be read by versions that know no other releases
    write(_path(), json.dumps({name: value for name, value in lab.__dict__.items() if value != {}}))


def wish(boxes: int | None, described: str | None, release: str | None = None) -> Lab:
    """What `up` is asked for: what is not said stays as it was, or is one usual box with the default hardware."""
    before = read() or Lab(1, hardware.DEFAULT)
    lab = replace(before, boxes=boxes or before.boxes, hardware=described or before.hardware)
    return lab.of_release(release, *lab.names) if release else lab


def forget() -> None:
    """There is no lab any more."""
    _path().unlink(missing_ok=True)


def _path() -> Path:
    return paths.state() / "lab.json"
