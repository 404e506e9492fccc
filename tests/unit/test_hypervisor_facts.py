"""What the facts make of a hypervisor's answers."""

import os
import subprocess
from pathlib import Path

import pytest

from gpubox.facts.hypervisor import HypervisorState, WayIn
from gpubox.facts.hypervisor_host import _QUESTIONS, HostState, _next_boot, _units
from gpubox.hypervisor.dkms import Kernel, NextBoot, parse
from gpubox.hypervisor.kinds import Kind, Name
from gpubox.hypervisor.nodes import Node
from gpubox.hypervisor.state import PassthroughState, Unit
from gpubox.support.errors import CannotTellError, GpuboxError
from tests.unit.test_facts import printed

TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 00000000:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 0100007F:7531 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 100 0 0 10 0
"""
INSIDE = (
    "/dev/nvidia0 c3 0 666|sh: 1: cannot create /dev/nvidia0: No such device or address\n"
    "/dev/nvidia-uvm 1ff 0 666|sh: 1: cannot create /dev/nvidia-uvm: Operation not permitted\n"
    "/dev/nvidiactl c3 ff 660|\n==\n8388608\ntoolkit\n"
)
ANSWERS = {
    "program": (0, ""),
    "devices": (0, "Character devices:\n195 nvidia\n"),
    "nodes": (0, "/dev/nvidia0 c3 0 666\n"),
    "cards": (1, ""),
    "pci": (0, ""),
    "driver": (
        0,
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x)\nGCC 12.2.0\n",
    ),
    "cgroup": (1, ""),
    "config": (0, "a\n\n"),
    "state": (0, "RUNNING\n"),
    "idmap": (0, "lxc.idmap = u 0 100000 65536\n"),
    "unit": (3, ""),
    "capabilities": (0, "000001ffffffffff\n"),
    "version": (0, "5.2.6-1~bpo12"),
    "last-words": (0, ""),
    "inside": (0, INSIDE + TCP),
}


def _processed(**changes: tuple[int, str]) -> PassthroughState:
    answers = ANSWERS | changes
    return HypervisorState().process(printed(**{name: (text, code) for name, (code, text) in answers.items()}))


@pytest.mark.pain("P11")
def test_a_running_container() -> None:
    found = _processed()
    assert found.config == "a\n\n"
    assert (found.state, found.cgroup, found.unit, found.unprivileged) == ("running", "v2", False, True)
    assert found.inside.nodes["/dev/nvidia-uvm"] == Node("/dev/nvidia-uvm", 511, 0)
    assert found.inside.denied == {"/dev/nvidia-uvm"}
    assert (found.inside.memlock, found.inside.ports, found.inside.cgroup_toolkit) == ("8388608", (30000,), True)
    assert (found.pve_container, found.may_raise_limits) == ((5, 2, 6), True)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (ANSWERS["driver"][1], "580.159.04"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Thu\n", "570.86.10"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261 Thu\n", "535.261"),
        ("", None),
    ],
)
def test_driver_version(text: str, version: str | None) -> None:
    assert _processed(driver=(0 if text else 1, text)).driver == version


def test_what_is_absent_is_said() -> None:
    found = _processed(config=(44, ""), state=(1, ""), inside=(0, ""))
    assert (found.config, found.state, found.inside.nodes) == (None, "absent", {})
    assert _processed(state=(0, "status: stopped\n"), inside=(0, "")).state == "stopped"
    assert _processed(capabilities=(0, "000001fffeffffff\n")).may_raise_limits is False
    assert _processed(cgroup=(0, "5:devices:/\n")).cgroup == "v1"


@pytest.mark.parametrize(
    "changes",
    [
        {"config": (1, "")},
        {"state": (1, "")},
        {"state": (0, "FREEZING\n")},
        {"inside": (1, "")},
        {"unit": (255, "")},
        {"cgroup": (2, "")},
    ],
)
@pytest.mark.pain("P81")
def test_other_exit_codes_are_cannot_tell(changes: dict[str, tuple[int, str]]) -> None:
    with pytest.raises(CannotTellError):
        _processed(**changes)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(GpuboxError, match=r"(?s)lacks the programs.*/usr/sbin/pct"):
        _processed(program=(1, "/usr/sbin/pct\n"))


@pytest.mark.parametrize("kind", ["lxc", "proxmox", "incus"])
def test_a_name_with_shell_characters_runs_nothing(kind: Name, tmp_path: Path) -> None:
    name = f"x$(touch {tmp_path}/a)`touch {tmp_path}/b`; touch {tmp_path}/c; 'touch {tmp_path}/d'"
    for line in (HypervisorState().command(kind, name), WayIn().command(kind, name, name)):
        subprocess.run(["sh", "-c", line], capture_output=True, check=True)
    assert list(tmp_path.iterdir()) == []


def test_units() -> None:
    text = "Id=a.service\nUnitFileState=enabled\nActiveState=active\nNeedDaemonReload=yes\n"
    text += "\nId=b.service\nUnitFileState=\n"
    assert _units(text) == {"a.service": Unit("enabled", "active", True), "b.service": Unit("", "", False)}
    assert _units("") == {}


def test_next_boot() -> None:
    assert _next_boot("6.8.8\n", "6.8.1-1-pve\n6.8.4-2-pve\n", "") == NextBoot("6.8.8", "6.8.1-1-pve", "0")
    assert _next_boot("6.8.8", "", 'GRUB_DEFAULT=0\nGRUB_DEFAULT="saved"\n').grub_default == "saved"


def test_the_hosts_questions_are_a_script_that_a_shell_can_run() -> None:
    line = HostState().command(["/nowhere"])
    printed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout.splitlines()
    found = HostState().process(printed)
    assert found.files["/nowhere"].kind == "absent"
    assert found.proc_devices.startswith("Character devices:")
    assert found.boot_files.marker is False


def test_a_restart_that_a_killed_run_left_going_is_waited_for(tmp_path: Path) -> None:
    kind = Kind("lxc", "gpu01")
    line = f"{kind.settled_question}; cat state".replace("/run/", f"{tmp_path}/")
    state, begun, go = tmp_path / "state", tmp_path / "begun", tmp_path / "go"
    state.write_text("STOPPED\n")
    assert subprocess.check_output(["sh", "-c", line], text=True, cwd=tmp_path) == "STOPPED\n"
    os.mkfifo(begun)
    os.mkfifo(go)
    words = kind.locked([["sh", "-c", "echo >begun; cat go; echo RUNNING >state"], ["true"]])
    with subprocess.Popen([word.replace("/run/", f"{tmp_path}/") for word in words], cwd=tmp_path):
        begun.read_text()
        with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as asked:
            go.write_text("on\n")
            assert asked.communicate()[0] == "RUNNING\n"


STOCK = ("kernel/drivers/video/fbdev/nvidia/nvidiafb.ko.xz", "kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko")


@pytest.mark.parametrize(
    ("files", "module"),
    [
        pytest.param(STOCK, False, id="the kernel's own: frame buffer and backlight"),
        pytest.param((*STOCK, "updates/dkms/nvidia-uvm.ko.zst"), True, id="NVIDIA's package, DKMS"),
        pytest.param((*STOCK, "updates/dkms/nvidia-current-uvm.ko"), True, id="Debian's package"),
        pytest.param((*STOCK, "kernel/drivers/video/nvidia-uvm.ko"), True, id="NVIDIA's installer"),
        pytest.param((), False, id="nothing"),
    ],
)
@pytest.mark.pain("P07")
def test_the_drivers_module_is_told_from_the_kernels_own(files: tuple[str, ...], module: bool, tmp_path: Path) -> None:
    (tmp_path / "lib/modules/6.8.12-4-pve/build").mkdir(parents=True)
    (tmp_path / "lib/modules/6.8.12-4-pve/build/Makefile").touch()
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.8.12-4-pve").touch()
    for file in files:
        path = tmp_path / "lib/modules/6.8.12-4-pve" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    line = _QUESTIONS["kernels"].replace("/lib/modules", f"{tmp_path}/lib/modules").replace("/boot", f"{tmp_path}/boot")
    printed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    assert parse(printed) == [Kernel("6.8.12-4-pve", image=True, headers=True, module=module)]
