"""The files that make a fresh root file system this box: names, keys, and in pve01 the lab's units."""

import shutil
import uuid
from pathlib import Path

from gpubox.lab import network, nvidia_smi, paths, shell

_PVE_FILES = {
    "interfaces": ("etc/network/interfaces", 0o644),
    "lab-cgroups": ("usr/local/sbin/lab-cgroups", 0o755),
    "lab-driver": ("usr/local/sbin/lab-driver", 0o755),
    "lab-cgroups.service": ("etc/systemd/system/lab-cgroups.service", 0o644),
    "lab-driver.service": ("etc/systemd/system/lab-driver.service", 0o644),
    "lab-apt.service": ("etc/systemd/system/lab-apt.service", 0o644),
}
_PVE_UNITS = {"lab-cgroups": "sysinit", "lab-driver": "sysinit", "lab-apt": "multi-user"}


def keys() -> bool:
    """The lab's own key pair and each possible box's host key with known_hosts; whether any was made."""
    known = []
    made = _key(paths.ssh() / "id_ed25519", "gpubox-lab")
    for name, address in network.addresses().items():
        made |= _key(paths.ssh() / "host" / name, name)
        public = (paths.ssh() / "host" / f"{name}.pub").read_text().split()
        known.append(f"{name},{address} {public[0]} {public[1]}\n")
    (paths.ssh() / "known_hosts").write_text("".join(known))
    return made


def furnish(name: str, root: Path) -> None:
    """Put the files of the box `name` into `root` (an overlay's upper folder, or a whole root file system)."""
    for folder, mode in (("root", 0o700), ("root/.ssh", 0o700), ("root/.cache", 0o700), ("root/.cache/uv", 0o755)):
        (root / folder).mkdir(exist_ok=True)
        (root / folder).chmod(mode)
    host_key = paths.ssh() / "host" / name
    _put(root / "root/.ssh/authorized_keys", (paths.ssh() / "id_ed25519.pub").read_text(), 0o600)
    _put(root / "etc/ssh/ssh_host_ed25519_key", host_key.read_text(), 0o600)
    _put(root / "etc/ssh/ssh_host_ed25519_key.pub", host_key.with_suffix(".pub").read_text())
    _put(root / "etc/hostname", f"{name}\n")
    _put(root / "etc/hosts", network.hosts_file())
    _put(root / "etc/machine-id", f"{uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}.gpubox-lab').hex}\n", 0o444)
    _put(root / "etc/resolv.conf", resolv_conf())
    _put(root / "usr/local/bin/nvidia-smi", Path(nvidia_smi.__file__).read_text(), 0o755)
    if name == network.HYPERVISOR:
        _furnish_hypervisor(root)


def resolv_conf() -> str:
    """The outer machine's name servers; a local stub (systemd-resolved) is replaced by what stands behind it."""
    text = Path("/etc/resolv.conf").read_text()
    behind = Path("/run/systemd/resolve/resolv.conf")
    return behind.read_text() if "nameserver 127." in text and behind.exists() else text


def _furnish_hypervisor(root: Path) -> None:
    for source, (target, mode) in _PVE_FILES.items():
        _put(root / target, (paths.files() / "pve" / source).read_text(), mode)
    for unit, target in _PVE_UNITS.items():
        wants = root / f"etc/systemd/system/{target}.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / f"{unit}.service").symlink_to(f"/etc/systemd/system/{unit}.service")


def _put(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _key(path: Path, comment: str) -> bool:
    """Make a key pair in a temporary place and rename it, the private half last: both halves or none are there."""
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    fresh = path.with_name(f".{path.name}.new")
    for stale in (fresh, fresh.with_suffix(".new.pub")):
        stale.unlink(missing_ok=True)
    shell.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(fresh))
    shutil.move(f"{fresh}.pub", f"{path}.pub")
    fresh.rename(path)
    return True
