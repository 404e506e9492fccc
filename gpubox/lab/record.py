"""What the lab was asked for and stands on: written by `up`, read by every other command."""

import json
from dataclasses import dataclass
from pathlib import Path

from gpubox.lab import hardware, network, paths
from gpubox.lab.files_io import write
from gpubox.lab.layers import Stack


@dataclass(frozen=True)
class Lab:
    """How many GPU boxes, which hardware description, and the layers that new containers stand on."""

    boxes: int
    hardware: str
    box_layers: tuple[str, ...] = ()
    hypervisor_layers: tuple[str, ...] = ()
    overlay: bool = True

    @property
    def names(self) -> list[str]:
        """The names of the GPU boxes."""
        return list(network.addresses())[1 : self.boxes + 1]

    def box_stack(self) -> Stack:
        """What a GPU box stands on."""
        return Stack(tuple(paths.base() / name for name in self.box_layers), self.overlay)

    def hypervisor_stack(self) -> Stack:
        """What pve01 stands on."""
        return Stack(tuple(paths.base() / name for name in self.hypervisor_layers), self.overlay)


def read() -> Lab | None:
    """The lab that is (or was being) built; None where there is none."""
    return Lab(**json.loads(_path().read_text())) if _path().exists() else None


def save(lab: Lab) -> None:
    """Remember what the lab is."""
    write(_path(), json.dumps(lab.__dict__))


def wish(boxes: int | None, described: str | None) -> Lab:
    """What `up` is asked for: what is not said stays as it was, or is one box with the default hardware."""
    before = read() or Lab(1, hardware.DEFAULT)
    return Lab(boxes or before.boxes, described or before.hardware)


def forget() -> None:
    """There is no lab any more."""
    _path().unlink(missing_ok=True)


def _path() -> Path:
    return paths.state() / "lab.json"
