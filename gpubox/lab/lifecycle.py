"""Bring the practice machine up, take it down, give back a bare box. Every step looks first and can be run again."""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpubox.lab import (
    aptrepo,
    base,
    clients,
    furnish,
    hardware,
    layers,
    lxc,
    network,
    paths,
    preflight,
    record,
    roots,
)
from gpubox.lab.record import Lab
from gpubox.lab.releases import DEFAULT, RELEASES
from gpubox.lab.steps import Steps
from gpubox.support.errors import GpuboxError

_PVE = network.HYPERVISOR
_LOAD_DRIVER = "/usr/local/sbin/lab-driver"


def up(boxes: int | None = None, described: str | None = None, release: str | None = None) -> list[str]:
    """Make everything that is missing and leave the rest alone; the titles of the steps that changed something.

    + release: the Debian release of the boxes; a box of another one is made anew, bare
    """
    lab = record.wish(boxes, described, release)
    hardware.load(lab.hardware)
    machine = preflight.look()
    preflight.check(machine)
    steps = Steps()
    with _locked():
        if machine.missing:
            with steps.step(f"packages that this machine lacks: {', '.join(machine.missing)}") as step:
                preflight.install_missing(step.say)
                step.did()
        _prepare(lab, steps)
        lab = _layers(lab, steps)
        with steps.step("apt repository of stand-in packages") as step:
            if aptrepo.ensure(step.say):
                step.did()
        with steps.step("network") as step:
            if network.up():
                step.did(f"{network.BRIDGE} {network.RANGE}")
        _containers(lab, steps)
        _tidy(lab)
    return steps.changes


def down(purge: bool = False) -> None:
    """Stop everything and leave the machine as it was; cached layers and downloads stay unless `purge`."""
    if not paths.state().exists():
        return
    with _locked():
        lxc.stop(_PVE, graceful_s=20)
        network.down()
        for folder in (paths.hypervisor(), paths.boxes(), paths.hardware()):
            shutil.rmtree(folder, ignore_errors=True)
        record.forget()
    if purge:
        shutil.rmtree(paths.state(), ignore_errors=True)


def reset(name: str, release: str | None = None) -> float:
    """Give `name` back bare; seconds until ssh answers. Resetting pve01 keeps its boxes' disks and configurations.

    + release: the Debian release that the box is made of from now on; None: the one it has
    """
    lab = _existing(name)
    if release is not None:
        lab = _with_release(lab, name, release)
    begun = time.monotonic()
    with _locked():
        lxc.stop(name)
        if name == _PVE:
            roots.discard(paths.hypervisor() / _PVE)
            roots.ensure_hypervisor(lab.hypervisor_stack())
        else:
            roots.discard(paths.boxes() / name)
            roots.ensure_box(name, lab.box_stack(name), lab.release(name))
        lxc.start(name)
        lxc.wait_for_ssh([_PVE, *lab.names] if name == _PVE else [name])
        roots.empty_trash()
    return time.monotonic() - begun


def give_hardware(name: str, described: str, driver: str | None = None) -> bool:
    """Make the box `name` see other hardware than the lab has; the lab's own without `driver` takes it back.

    The box is restarted when it must look elsewhere; another driver version on the same card appears at once, as after
    an update of the hypervisor. Whether anything changed.
    """
    lab = _existing(name)
    if name == _PVE:
        raise GpuboxError(f"{_PVE} owns the lab's hardware", "a box", "gpubox lab up --hardware NAME")
    with _locked():
        if described == lab.hardware and driver is None:
            shutil.rmtree(paths.hardware_of(name), ignore_errors=True)
            changed = False
        else:
            changed = hardware.install_for(name, described, driver)
        if not roots.refresh_box(name):
            return changed
        lxc.stop(name)
        lxc.start(name)
        lxc.wait_for_ssh([name])
    return True


def remajor() -> dict[str, int]:
    """New dynamic majors, as after a driver reload: /proc/devices everywhere and the nodes in pve01 change."""
    _existing(_PVE)
    with _locked():
        majors = hardware.remajor()
        lxc.inside(_LOAD_DRIVER)
    return majors


def status() -> list[dict[str, object]]:
    """Each container: host, address, LXC's state, whether sshd answers, and the stand-in hardware. Empty: no lab."""
    _need_root()
    lab = record.read()
    names = [_PVE, *lab.names] if lab else []
    return [
        {
            "host": name,
            "address": network.addresses()[name],
            "state": (state := lxc.state(name)),
            "ssh": state == "RUNNING" and lxc.ssh_answers(name),
            "debian": RELEASES[lab.release(name)].version if lab else 0,
            "hardware": f"{hardware.current().get('name', '')} (stand-in)",
        }
        for name in names
    ]


def ssh_command(name: str, command: Sequence[str]) -> list[str]:
    """The ssh command line into a box, with the lab's key and known_hosts."""
    _existing(name)
    options = ("-o", f"UserKnownHostsFile={paths.ssh()}/known_hosts", "-o", "StrictHostKeyChecking=yes")
    key = str(paths.ssh() / "id_ed25519")
    target = f"root@{network.addresses()[name]}"
    return ["ssh", "-i", key, "-o", "IdentitiesOnly=yes", *options, "-o", "LogLevel=ERROR", target, *command]


def _prepare(lab: Lab, steps: Steps) -> None:
    with steps.step("ssh keys") as step:
        if furnish.keys():
            step.did()
    with steps.step(f"stand-in hardware: {hardware.load(lab.hardware).description}") as step:
        if hardware.install(lab.hardware):
            step.did()
            if lxc.state(_PVE) == "RUNNING":
                lxc.inside(_LOAD_DRIVER)
    for folder in (paths.hypervisor(), paths.boxes(), paths.apt(), paths.cache() / "uv"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in [_PVE, *lab.names]:
        _apt_cache(name, lab.names[0])


def _apt_cache(name: str, first: str) -> None:
    """Each box has its own (apt locks the folder); a new one begins with links to what the first box downloaded.

    Links to packages alone: one to the lock would be the same lock.
    """
    folder, model = (paths.cache() / "apt" / other for other in (name, first))
    is_new = not folder.exists()
    (folder / "partial").mkdir(parents=True, exist_ok=True)
    for package in model.glob("*.deb") if is_new else ():
        os.link(package, folder / package.name)


def _layers(lab: Lab, steps: Steps) -> Lab:
    overlay = layers.overlayfs_works()
    if not overlay:
        steps.console.print("  no overlayfs in this kernel: every container gets a full copy, and a reset takes longer")
    stacks, hypervisor = base.ensure(steps, _ground(overlay), {DEFAULT, *lab.releases.values()})
    names = {release: tuple(layer.name for layer in stack.layers) for release, stack in stacks.items()}
    lab = replace(
        lab,
        overlay=overlay,
        box_layers=names.pop(DEFAULT),
        layers_of_release=names,
        hypervisor_layers=tuple(layer.name for layer in hypervisor.layers),
    )
    record.save(lab)
    return lab


def _ground(overlay: bool) -> base.Ground:
    return base.Ground(clients.files(os.environ, str(network.RANGE)), _mirror(), overlay)


def _with_release(lab: Lab, name: str, release: str) -> Lab:
    if name == _PVE:
        raise GpuboxError(f"{_PVE} is always Debian {RELEASES[DEFAULT].version}", "a box", "gpubox lab status")
    with _locked():
        return _layers(lab.of_release(release, name), Steps())


def _containers(lab: Lab, steps: Steps) -> None:
    for name in _surplus(lab):
        with steps.step(f"{name}: no longer asked for, removed") as step:
            lxc.stop(name)
            roots.discard(paths.boxes() / name)
            step.did()
    for name in lab.names:  # before pve01, which starts them when it boots
        with steps.step(f"{name}: disk and configuration") as step:
            if roots.release_of(name) not in ("", lab.release(name)):
                lxc.stop(name)
            if roots.ensure_box(name, lab.box_stack(name), lab.release(name)):
                step.did()
    with steps.step(f"{_PVE}: hypervisor") as step:
        if roots.ensure_hypervisor(lab.hypervisor_stack()) | _start(_PVE):
            step.did(network.addresses()[_PVE])
    for name in lab.names:
        with steps.step(f"{name}: GPU box") as step:
            if _start(name):
                step.did(network.addresses()[name])


def _start(name: str) -> bool:
    running = lxc.state(name) == "RUNNING"
    if not running:
        lxc.start(name)
    lxc.wait_for_ssh([name])
    return not running


def _surplus(lab: Lab) -> list[str]:
    """Boxes that an earlier `up` made; a container without `lab.conf` is somebody's own and stays."""
    present = {p.parent.name for p in paths.boxes().glob("gpu[0-9][0-9]/lab.conf")}
    return sorted(present - set(lab.names))


def _tidy(lab: Lab) -> None:
    roots.empty_trash()
    layers.remove_leftovers(roots.layers_in_use() | _ground(lab.overlay).known())


def _existing(name: str) -> Lab:
    _need_root()
    lab = record.read()
    if lab is None:
        raise GpuboxError("there is no practice machine", "one that is up", "gpubox lab up")
    if name not in [_PVE, *lab.names]:
        raise GpuboxError(f"the practice machine has no {name!r}", f"one of: {', '.join([_PVE, *lab.names])}")
    return lab


def _need_root() -> None:
    if os.geteuid() != 0:
        raise GpuboxError("not root", "root, as for every `gpubox lab` command", "run it with sudo")


def _mirror() -> str:
    """The Debian mirror that this machine uses, if it is a Debian; else the public one."""
    found = [
        match[1]
        for path in [*Path("/etc/apt").glob("sources.list"), *Path("/etc/apt").glob("sources.list.d/*")]
        if path.suffix in (".list", ".sources")
        for match in re.finditer(
            r"^(?:URIs:|deb(?:\s+\[[^]]*\])?)\s+(https?://\S+/debian)/?(?:\s|$)", path.read_text(), re.M
        )
    ]
    return found[0] if found else "http://deb.debian.org/debian"


@contextmanager
def _locked() -> Iterator[None]:
    """One lab command at a time; a second one waits."""
    _need_root()
    paths.state().mkdir(parents=True, exist_ok=True)
    with (paths.state() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
