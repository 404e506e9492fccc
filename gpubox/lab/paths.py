"""Where the practice machine keeps its things. Functions, so that tests can point elsewhere (GPUBOX_LAB_DIR)."""

import os
from pathlib import Path


def state() -> Path:
    """The lab's folder on the outer machine; GPUBOX_LAB_DIR overrides /var/lib/gpubox-lab."""
    return Path(os.environ.get("GPUBOX_LAB_DIR") or "/var/lib/gpubox-lab")


def base() -> Path:
    """Cached root file systems, one folder a layer, named by a digest of its recipe."""
    return state() / "base"


def hypervisor() -> Path:
    """LXC's own folder (lxcpath) for the outer container `pve01`."""
    return state() / "lxc"


def boxes() -> Path:
    """What `pve01` sees as /var/lib/lxc: one folder a GPU box. A real folder, since overlays do not nest."""
    return state() / "boxes"


def hardware() -> Path:
    """The live state of the stand-in hardware: what the boxes see of the driver and the cards."""
    return state() / "hardware"


def hardware_of(box: str) -> Path:
    """The live state of one box that was given hardware of its own; none there: it sees the lab's."""
    return hardware() / "of" / box


def ssh() -> Path:
    """Keys: id_ed25519 for the way in, known_hosts, and host/ with each box's stable host key."""
    return state() / "ssh"


def apt() -> Path:
    """The signed repository of stand-in packages, served to the boxes by `pve01`."""
    return state() / "apt"


def cache() -> Path:
    """What makes the next run quick and survives `reset` and `down`: apt archives, uv's cache, downloads."""
    return state() / "cache"


def files() -> Path:
    """Files of the lab that are copied into boxes as they are."""
    return Path(__file__).parent / "files"


def system_packages() -> Path:
    """The script that lists and installs what the outer machine needs; `make` calls it before Python is there."""
    return Path(__file__).parent / "system_packages.sh"
