"""The hypervisor step under failure, on containers that the step itself makes: gpu16, and the unprivileged gpu15."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

from gpubox.hypervisor.nodes import CONTROL
from gpubox.inventory import Inventory
from gpubox.lab import hardware, lxc
from gpubox.lab import paths as lab
from gpubox.support import paths
from tests.acceptance.test_devices import OPEN
from tests.deploy import Run, converge

NAME, ADDRESS = "gpu16", "10.87.0.26"
UNPRIVILEGED = "gpu15"
CONFIG = f"/var/lib/lxc/{NAME}/config"
NODES = [*(f"/dev/nvidia{n}" for n in range(8)), *CONTROL]
ARCHIVE = "/var/lib/lxc/gpubox-test-root.tar"
INVENTORY = """
from gpubox.inventory import checked

_ssh = {"ssh_user": "root", "ssh_key": _KEY, "ssh_known_hosts_file": _KNOWN}
_stand_ins = [
    "lxc.apparmor.profile = unconfined",
    "lxc.mount.entry = /var/lib/gpubox-lab/hardware/proc-devices proc/devices none bind,ro,create=file,optional 0 0",
]
def _box(name, address, unprivileged):
    create = {"template": _ARCHIVE, "address": f"{address}/24", "gateway": "10.87.0.1", "unprivileged": unprivileged,
              "public_key": _PUBLIC, "lines": _stand_ins}
    return (name, {"ssh_hostname": address, "hypervisor": "pve01", "profile": "tiny-cpu", "gpus_shared": True,
                   "container": {"name": name, "create": create}, **_ssh})

hypervisors = [("pve01", {"ssh_hostname": "10.87.0.10", **_ssh})]
gpu_boxes = [_box("gpu15", "10.87.0.25", True), _box("gpu16", "10.87.0.26", False)]
checked(globals())
"""


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory, on_hypervisor: Host) -> Iterator[Path]:
    """An inventory whose one container does not exist yet; afterwards it is gone again."""
    file = tmp_path_factory.mktemp("inventory") / "own.py"
    key = lab.ssh() / "id_ed25519"
    values = {"KEY": str(key), "KNOWN": str(lab.ssh() / "known_hosts"), "ARCHIVE": ARCHIVE}
    values["PUBLIC"] = key.with_suffix(".pub").read_text().strip()
    file.write_text("".join(f"_{name} = {value!r}\n" for name, value in values.items()) + INVENTORY)
    base = on_hypervisor.check_output("ls -d /var/lib/gpubox-lab/base/debian-* | head -1")
    on_hypervisor.check_output("tar -C %s --exclude=./var/cache/apt/archives/* -cf %s .", base, ARCHIVE)
    yield file
    for name in (NAME, UNPRIVILEGED):
        on_hypervisor.run(f"lxc-stop -k -n {name}; rm -rf /var/lib/lxc/{name}")
    on_hypervisor.check_output(f"rm {ARCHIVE}")


@pytest.fixture(scope="module")
def step(inventory: Path) -> Callable[[], Run]:
    """Run the hypervisor's part of the deploy once."""
    return lambda: converge(inventory, "--limit", "pve01")


@pytest.fixture(scope="module")
def made(step: Callable[[], Run]) -> list[str]:
    """What one run did to have the container; a second does nothing."""
    first = step().ended_well()
    assert step().ended_well().changed == []
    return [name for name in first.changed if NAME in name]


@pytest.mark.pain("P76")
def test_from_no_container_to_one_that_ssh_reaches(made: list[str]) -> None:
    assert made == [f"pve01: Hypervisor | {what} {NAME}" for what in ("Container", "Cards of", "ssh into")]
    key, options = str(lab.ssh() / "id_ed25519"), ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]
    assert subprocess.run(["ssh", "-oBatchMode=yes", *options, "-i", key, f"root@{ADDRESS}", "true"]).returncode == 0


THROUGH = """
from pyinfra.operations import files, server
files.put(name="In", src={blob!r}, dest={there!r})
files.get(name="Out", src={there!r}, dest={back!r})
server.shell(name="Asked", commands=["test $HOME = /root && test $(hostname) = gpu16 && systemctl is-active ssh"])
"""


@pytest.mark.pain("P83")
def test_a_container_is_reached_without_its_sshd(made: list[str], on_hypervisor: Host, tmp_path: Path) -> None:
    """Through lxc-attach: a large binary file in and out, and a command whose exit code says that sshd is down."""
    blob, back = bytes(range(256)) * 12_000, tmp_path / "back"
    (tmp_path / "blob").write_bytes(blob)
    values = {"blob": str(tmp_path / "blob"), "there": "/root/a 'b' $c", "back": str(back)}
    (tmp_path / "through.py").write_text(THROUGH.format(**values))
    data = {"user": "root", "key": str(lab.ssh() / "id_ed25519"), "known_hosts_file": str(lab.ssh() / "known_hosts")}
    options = [word for key, value in data.items() for word in ("--data", f"ssh_{key}={value}")]
    program = str(Path(sys.executable).parent / "pyinfra")
    command = [program, "-y", *options, f"@lxc/10.87.0.10:{NAME}", str(tmp_path / "through.py")]
    on_hypervisor.check_output(f"lxc-attach -n {NAME} -- systemctl stop ssh")
    run = subprocess.run(command, capture_output=True, text=True, cwd=paths.root())
    on_hypervisor.check_output(f"lxc-attach -n {NAME} -- systemctl start ssh")
    assert back.read_bytes() == blob
    assert (run.returncode, "inactive" in run.stdout + run.stderr) == (1, True), run.stderr


@pytest.mark.pain("P17")
def test_every_user_of_an_unprivileged_container_opens_every_node(made: list[str], on_hypervisor: Host) -> None:
    mapped = on_hypervisor.check_output(f"lxc-attach -n {UNPRIVILEGED} -- cat /proc/self/uid_map")
    assert mapped.split()[1] == "100000"
    for user in ("root", "nobody"):
        assert opened(on_hypervisor, UNPRIVILEGED, user) == dict.fromkeys(NODES, "ENXIO"), user


@pytest.mark.pain("P03")
def test_moved_majors_are_denied_and_one_run_puts_them_right(
    made: list[str], step: Callable[[], Run], on_hypervisor: Host, boxes: Inventory
) -> None:
    try:
        hardware.remajor()
        on_hypervisor.check_output("systemctl restart lab-driver")
        restart(on_hypervisor)
        assert opened(on_hypervisor)["/dev/nvidia-uvm"] == "EPERM"
        assert [name for name in step().ended_well().changed if NAME in name] == [
            f"pve01: Hypervisor | Cards of {NAME}"
        ]
        assert opened(on_hypervisor) == dict.fromkeys(NODES, "ENXIO")
        assert step().ended_well().changed == []
    finally:
        hardware.remajor()
        on_hypervisor.check_output("systemctl restart lab-driver")
        step().ended_well()
        converge(boxes.path, "--limit", "pve01").ended_well()


CARDS = f"Hypervisor | Cards of {NAME}"


@pytest.mark.parametrize(
    ("operation", "seconds"),
    [
        ("Hypervisor | Module options", 0),
        ("Hypervisor | Device nodes", 0),
        (f"Hypervisor | Cards of {UNPRIVILEGED}", 0),
        *((CARDS, seconds) for seconds in (0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    ],
)
def test_a_killed_run_leaves_a_whole_file_and_the_next_converges(
    operation: str, seconds: float, made: list[str], inventory: Path, step: Callable[[], Run], on_hypervisor: Host
) -> None:
    """The next run comes at once: what the hypervisor was told may still go on."""
    new = on_hypervisor.check_output(f"cat {CONFIG}")
    on_hypervisor.check_output(f"sed -i '/devices.allow = c 195:3 /d' {CONFIG}")
    old = on_hypervisor.check_output(f"cat {CONFIG}")
    restart(on_hypervisor)
    killed(inventory, operation, seconds)
    assert on_hypervisor.check_output(f"cat {CONFIG}") in {old, new}
    step().ended_well()
    assert on_hypervisor.check_output(f"cat {CONFIG}") == new
    assert opened(on_hypervisor) == dict.fromkeys(NODES, "ENXIO")
    assert step().ended_well().changed == []


@pytest.mark.pain("P01", "P02")
def test_nodes_are_there_before_containers_after_a_reboot(made: list[str], on_hypervisor: Host) -> None:
    """Loading the driver makes no node for unified memory: the unit does, before any container starts."""
    nodes = lab.hardware() / "nodes"
    whole = nodes.read_text()
    try:
        nodes.write_text("".join(line for line in whole.splitlines(keepends=True) if not line.startswith("nvidia-uvm")))
        lxc.stop("pve01", graceful_s=30)
        lxc.start("pve01")
        lxc.wait_for_ssh(["pve01", "gpu01"])
        on_hypervisor.check_output(f"lxc-wait -n {NAME} -s RUNNING -t 60")
        assert on_hypervisor.check_output("systemctl is-active gpubox-nvidia-nodes") == "active"
        assert opened(on_hypervisor) == dict.fromkeys(NODES, "ENXIO")
    finally:
        nodes.write_text(whole)


def restart(on_hypervisor: Host) -> None:
    on_hypervisor.check_output(f"lxc-stop -k -n {NAME}; lxc-start -n {NAME} && lxc-wait -n {NAME} -s RUNNING")


def killed(inventory: Path, operation: str, seconds: float) -> None:
    """A run that is ended by SIGKILL so many seconds after the beginning of an operation."""
    program = str(Path(sys.executable).parent / "pyinfra")
    command = [program, "-y", str(inventory), "deploy.py", "--limit", "pve01"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, cwd=paths.root()) as run:
        begun = any(f"Starting operation: {operation}" in line for line in run.stdout or ())
        time.sleep(seconds)
        run.kill()
    assert begun, f"the run never came to {operation}"


def opened(on_hypervisor: Host, name: str = NAME, user: str = "root") -> dict[str, str]:
    """Path -> what opening it inside the container gives its user."""
    as_user = f"lxc-attach -n {name} -- setpriv --reuid={user} --clear-groups /usr/bin/python3 -c %s {' '.join(NODES)}"
    answers: dict[str, str] = json.loads(on_hypervisor.check_output(as_user, OPEN))
    return answers
