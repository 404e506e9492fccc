"""A container's own folder: made beside and renamed, moved to the trash at once and emptied later."""

import re
import shutil
import subprocess
import uuid
from pathlib import Path

from gpubox.lab import clients, containers, furnish, network, paths, preflight, shell
from gpubox.lab.files_io import write
from gpubox.lab.layers import Stack
from gpubox.lab.releases import DEFAULT

_PVE = network.HYPERVISOR
_RELEASE = "release"  # in a box's folder: the Debian release that it was made of


def ensure_box(name: str, stack: Stack, release: str) -> bool:
    """The folder of a GPU box, whole or not at all; what exists and can stand is left alone. Whether it was made."""
    folder = paths.boxes() / name
    if _stands(folder) and release_of(name) == release:
        return False
    fresh = _fresh(folder, name, stack)
    write(fresh / _RELEASE, f"{release}\n")
    write(fresh / "lab.conf", _lab_part(name, release))
    write(fresh / "config", containers.box(name, stack, network.default_link()[1]))
    return _put(fresh, folder)


def release_of(name: str) -> str:
    """The Debian release that a box was made of; empty: there is no such box."""
    folder = paths.boxes() / name
    said = folder / _RELEASE
    if said.is_file():
        return said.read_text().strip()
    return DEFAULT if folder.is_dir() else ""  # made before there were others


def refresh_box(name: str) -> bool:
    """The lab's own part of an existing box's configuration as it is now; whether it changed."""
    return write(paths.boxes() / name / "lab.conf", _lab_part(name, release_of(name)))


def ensure_hypervisor(stack: Stack) -> bool:
    """The folder of pve01, likewise."""
    folder = paths.hypervisor() / _PVE
    if _stands(folder):
        return False
    fresh = _fresh(folder, _PVE, stack)
    mounts = containers.hypervisor_mounts(
        paths.base(), paths.boxes(), paths.hardware(), paths.apt(), paths.cache(), _shared()
    )
    write(fresh / "config", containers.hypervisor(stack, folder / containers.ROOT, mounts, network.default_link()[1]))
    return _put(fresh, folder)


def discard(folder: Path) -> None:
    """Move a folder out of the way; quick, whatever its size."""
    if folder.exists():
        folder.rename(paths.state() / f"trash-{uuid.uuid4().hex}")


def empty_trash() -> None:
    """Delete what was discarded, in a process that outlives this command: gigabytes take longer than a reset may."""
    trash = [str(path) for path in paths.state().glob("trash-*")]
    if trash:
        subprocess.Popen(["rm", "-rf", *trash], start_new_session=True)


def layers_in_use() -> set[Path]:
    """The layers that an existing container's configuration names."""
    configs = [*paths.boxes().glob("*/config"), *paths.hypervisor().glob("*/config")]
    return {layer for config in configs for layer in _layers(config)}


def _stands(folder: Path) -> bool:
    config = folder / "config"
    return config.is_file() and all(layer.is_dir() for layer in _layers(config))


def _layers(config: Path) -> list[Path]:
    line = re.search(r"^lxc\.rootfs\.path\s*=\s*overlay:(\S+):[^:\s]+$", config.read_text(), re.MULTILINE)
    return [paths.base() / Path(layer).name for layer in line[1].split(":")] if line else []


def _fresh(folder: Path, name: str, stack: Stack) -> Path:
    fresh = folder.with_name(f".{name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    root = fresh / containers.ROOT
    root.mkdir(parents=True)
    if not stack.overlay:
        shell.run("cp", "-a", "--reflink=auto", f"{stack.layers[0]}/.", str(root))
    furnish.furnish(name, root)
    return fresh


def _put(fresh: Path, folder: Path) -> bool:
    discard(folder)
    fresh.rename(folder)
    return True


def _lab_part(name: str, release: str) -> str:
    own = paths.hardware_of(name).is_dir()
    mounts = containers.box_mounts(name, _shared(), own)
    return containers.box_lab(mounts, containers.init_line(release, preflight.cgroup_layout()))


def _shared() -> list[Path]:
    return clients.folders_here()
