"""The hypervisor's operations: state in, commands out; a second run gives none."""

import hashlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.context import ctx_host, ctx_state

from gpubox.hypervisor import passthrough as wish
from gpubox.hypervisor.cards import Card
from gpubox.hypervisor.create import commands as creation
from gpubox.hypervisor.kinds import Kind
from gpubox.hypervisor.nodes import Node, needed
from gpubox.hypervisor.state import Inside, PassthroughState
from gpubox.operations import passthrough as operations
from gpubox.operations.create import create, way_in
from gpubox.operations.passthrough import passthrough
from gpubox.settings.host import Create
from gpubox.support.errors import CannotTellError

DEVICES = "Character devices:\n195 nvidia\n511 nvidia-uvm\n508 nvidia-caps\n"
CARDS = [Card("0000:01:00.0", "nvidia", 0, 0), Card("0000:41:00.0", "nvidia", 1, 1)]
NODES = {node.path: node for node in needed(DEVICES, [0, 1])}
LXC, PVE, INCUS = Kind("lxc", "gpu01"), Kind("proxmox", "101"), Kind("incus", "gpu01")
FRESH = PassthroughState(
    proc_devices=DEVICES,
    nodes=NODES,
    cards=CARDS,
    driver="580.95.05",
    cgroup="v2",
    config="lxc.uts.name = gpu01\n",
    state="running",
    inside=Inside(memlock="unlimited", ports=(30000,)),
    unprivileged=False,
    unit=False,
    may_raise_limits=True,
    pve_container=(5, 2, 6),
)


@pytest.fixture(autouse=True)
def _on_a_host() -> Iterator[None]:
    with ctx_host.use(SimpleNamespace(name="pve01", print_prefix="[pve01] ")):
        yield


def _converged(box: Kind, found: PassthroughState) -> PassthroughState:
    text = wish.new_text(box, found, wish.gift(box, found, CARDS, caps=False))
    return replace(found, config=text, inside=replace(found.inside, nodes=NODES))


DONE = _converged(LXC, FRESH)


def _commands(box: Kind, *states: PassthroughState, **arguments: Any) -> list[str]:
    """Each call of look gives the next state, the last one for ever."""
    left = list(states)
    look = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731 - a fake of two lines
    return [_text(command) for command in passthrough._inner(box=box, look=look, **arguments)]


def _text(command: Any) -> str:
    return command.get_raw_value() if isinstance(command, StringCommand) else command.function.__name__


LOCKED = "flock -o /run/gpubox-container-{}.lock /bin/sh -c "
RESTART = LOCKED.format("gpu01") + "'/usr/bin/lxc-stop -n gpu01 -t 90 && /bin/sh -c"


def test_a_converged_container_is_left_alone() -> None:
    assert _commands(LXC, DONE) == []


def test_a_fresh_container_is_written_restarted_and_looked_at() -> None:
    written, restarted, checked = _commands(LXC, FRESH)
    assert "mv -fT /var/lib/lxc/gpu01/config.gpubox-new /var/lib/lxc/gpu01/config" in written
    assert restarted.startswith(RESTART)
    assert checked == "_check"


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(replace(DONE.inside, denied=frozenset(["/dev/nvidia-uvm"])), id="denied by the device cgroup"),
        pytest.param(
            replace(DONE.inside, nodes=NODES | {"/dev/nvidia-uvm": Node("/dev/nvidia-uvm", 238, 0)}), id="stale major"
        ),
        pytest.param(replace(DONE.inside, nodes={}), id="right file, not yet restarted (an interrupted run)"),
        pytest.param(
            replace(DONE.inside, nodes=NODES | {"/dev/nvidia2": Node("/dev/nvidia2", 195, 2)}), id="one too many"
        ),
    ],
)
@pytest.mark.pain("P03")
def test_a_running_container_that_lacks_something_is_restarted_without_a_write(inside: Inside) -> None:
    restarted, checked = _commands(LXC, replace(DONE, inside=inside))
    assert restarted.startswith(RESTART)
    assert checked == "_check"


def test_without_permission_the_change_is_written_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "pyinfra"):
        assert len(_commands(LXC, FRESH, allow_restart=False)) == 1
        assert _commands(LXC, replace(DONE, inside=Inside(ports=(30000,))), allow_restart=False) == []
    assert "pending, not allowed: a restart of container gpu01" in caplog.text
    assert "it serves on port 30000" in caplog.text


def _frozen() -> PassthroughState:
    raise CannotTellError("the container is frozen")


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (lambda: DONE, None),
        (lambda: replace(DONE, inside=Inside()), "/dev/nvidia0 is missing"),
        (lambda: replace(DONE, state="stopped"), "it is stopped"),
        (_frozen, "the container is frozen"),
    ],
)
def test_after_a_restart_the_host_fails_with_what_is_wrong(
    look: Callable[[], PassthroughState], said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    given, on = wish.gift(LXC, DONE, CARDS, caps=False), cast(Any, SimpleNamespace(print_prefix=""))
    with caplog.at_level("ERROR", "pyinfra"):
        assert operations._check(cast(Any, None), on, LXC, given, look) is (said is None)
    assert said is None or f"container gpu01 after its restart: {said}" in caplog.text


def test_a_written_change_that_needs_no_restart_restarts_nothing() -> None:
    """Proxmox: an entry of a node that the container has already (a hot-plugged one) only lacked its mode."""
    done = _converged(PVE, replace(FRESH, config="arch: amd64\n"))
    loose = replace(done, config=(done.config or "").replace("nvidia0,mode=0666", "nvidia0"))
    (written,) = _commands(PVE, loose)
    assert written.startswith("flock -w 30 /run/lock/lxc/pve-config-101.lock /bin/sh -c")
    assert "chmod" not in written  # the cluster's file system sets modes itself


@pytest.mark.parametrize(
    ("box", "config", "start"),
    [
        (LXC, DONE.config, "'/bin/sh -c '\"'\"'log=/run/gpubox-lxc-start.log"),
        (PVE, _converged(PVE, replace(FRESH, config="arch: amd64\n")).config, "'/usr/sbin/pct start 101'"),
    ],
)
def test_a_container_that_is_down_is_started(box: Kind, config: str, start: str) -> None:
    started, checked = _commands(box, replace(DONE, config=config, state="stopped", inside=Inside()))
    assert started.startswith(LOCKED.format(box.container) + start)
    assert checked == "_check"


def test_the_unit_that_runs_a_container_restarts_it() -> None:
    restarted, _ = _commands(LXC, replace(DONE, inside=Inside(), unit=True))
    assert restarted == LOCKED.format("gpu01") + "'systemctl restart lxc@gpu01.service'"


def test_incus_is_told_by_its_own_commands() -> None:
    instance = '{"name": "gpu01", "type": "container", "config": {"security.privileged": "true"}, "devices": {}}'
    first, second, restarted, _ = _commands(INCUS, replace(FRESH, config=instance))
    assert first == "incus config device add gpu01 gpu-0000-01-00-0 gpu gputype=physical pci=0000:01:00.0 mode=0666"
    assert "pci=0000:41:00.0" in second
    assert (
        restarted == LOCKED.format("gpu01") + "'/usr/bin/incus stop gpu01 --timeout 90 && /usr/bin/incus start gpu01'"
    )


@pytest.mark.pain("P76")
def test_incus_plugs_in_while_it_runs() -> None:
    instance = '{"name": "gpu01", "type": "container", "config": {"security.privileged": "true"}, "devices": {}}'
    after = replace(FRESH, config=instance, inside=replace(FRESH.inside, nodes=NODES))
    assert len(_commands(INCUS, replace(FRESH, config=instance), after)) == 2


@pytest.mark.parametrize(
    ("found", "arguments", "message"),
    [
        (replace(FRESH, config=None, state="absent"), {}, "there is no container gpu01"),
        (replace(FRESH, proc_devices="Character devices:\n"), {}, "its kernel module is not loaded"),
        (FRESH, {"gpus": [7]}, "there is no card 7"),
        (FRESH, {"others": {"gpu02": [1]}}, "given to both gpu01 and gpu02"),
        (FRESH, {"gpus": [0], "others": {"gpu02": [7]}}, "container gpu02 beside it: gpus: there is no card 7"),
        (FRESH, {"caps": True}, "no nodes below /dev/nvidia-caps"),
    ],
)
def test_errors_name_the_container(found: PassthroughState, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError, match=f"gpu01 on pve01: .*{message}"):
        _commands(LXC, found, **arguments)


@pytest.mark.parametrize(
    ("found", "arguments"),
    [
        pytest.param(replace(FRESH, config=None, state="absent"), {"to_be_made": True}, id="no container yet"),
        pytest.param(
            replace(FRESH, proc_devices="Character devices:\n195 nvidia\n"), {}, id="nvidia-uvm not loaded yet"
        ),
    ],
)
@pytest.mark.pain("P76")
def test_what_an_earlier_operation_will_have_done_is_only_counted_in_a_plan(
    found: PassthroughState, arguments: dict[str, Any]
) -> None:
    with ctx_state.use(SimpleNamespace(is_executing=False)):
        assert _commands(LXC, found, **arguments) == ["true"]
    with ctx_state.use(SimpleNamespace(is_executing=True)):
        assert _commands(LXC, found, **arguments) == ["_fail"]


def test_a_part_of_the_cards_brings_a_part_of_the_nodes() -> None:
    given = wish.gift(LXC, FRESH, CARDS[1:], caps=False)
    assert [node.path for node in given.nodes if node.path[11:].isdigit()] == ["/dev/nvidia1"]


def test_a_container_without_cards_needs_no_driver() -> None:
    bare = replace(FRESH, proc_devices="Character devices:\n", cards=[])
    assert wish.gift(LXC, bare, [], caps=False).nodes == ()
    (written,) = _commands(LXC, bare, gpus=[])
    assert "config.gpubox-new" in written


@pytest.mark.pain("P12")
def test_caps_only_when_asked() -> None:
    cap = Node("/dev/nvidia-caps/nvidia-cap1", 237, 1, 0o400)  # its major is stale: the kernel's counts
    found = replace(FRESH, nodes=NODES | {cap.path: cap})
    assert wish.gift(LXC, found, CARDS, caps=False).caps == ()
    assert wish.gift(LXC, found, CARDS, caps=True).caps == (Node(cap.path, 508, 1, 0o400),)


@pytest.mark.pain("P62")
def test_unprivileged_containers_may_lock_memory_where_the_hypervisor_can_grant_it() -> None:
    found = replace(FRESH, unprivileged=True)
    text = wish.new_text(LXC, found, wish.gift(LXC, found, CARDS, caps=False))
    assert "lxc.prlimit.memlock = unlimited\n" in text
    nested = replace(found, may_raise_limits=False)
    assert "prlimit" not in wish.new_text(LXC, nested, wish.gift(LXC, nested, CARDS, caps=False))
    assert any("may not raise limits" in line for line in wish.remarks(LXC, nested))
    limited = replace(DONE, unprivileged=True, inside=replace(DONE.inside, memlock="8388608"))
    assert wish.faults(limited, wish.gift(LXC, limited, CARDS, caps=False)) == ["may lock 8388608 bytes of memory"]


SNAPSHOT = "[before]\nlxc.cgroup2.devices.allow: c 409:* rwm\nlxc.mount.entry: /dev/nvidia7 dev/nvidia7 none bind\n"


def test_remarks_are_about_what_counts_now_and_not_about_snapshots() -> None:
    stale = "lxc.cgroup2.devices.allow: c 234:* rwm"
    found = replace(FRESH, config=f"arch: amd64\n{stale}\n\n{SNAPSHOT}")
    assert wish.remarks(PVE, found) == [
        f"/etc/pve/lxc/101.conf: '{stale}' allows a device number that the kernel does not have; it is left as it is"
    ]
    seventh = Node("/dev/nvidia7", 195, 7)
    more = replace(found, inside=replace(DONE.inside, nodes=NODES | {seventh.path: seventh}))
    assert wish.faults(more, wish.gift(PVE, more, CARDS, caps=False)) == ["/dev/nvidia7 is not its any more"]


def _replaced(tmp_path: Path, at_start: str, read: str, new: str) -> tuple[int, str]:
    """Run the real shell text of the write against a real file."""
    file = tmp_path / "config"
    file.write_bytes(at_start.encode(errors="surrogateescape"))
    file.chmod(0o640)
    command = operations._replace(Kind("lxc", "x"), read, new)
    line = command.get_raw_value().replace("/var/lib/lxc/x", str(tmp_path))
    done = subprocess.run(["sh", "-c", line], input=str(command.connector_arguments["_stdin"]), text=True, check=False)
    return done.returncode, file.read_bytes().decode(errors="surrogateescape")


def test_the_write_keeps_mode_and_odd_bytes(tmp_path: Path) -> None:
    assert _replaced(tmp_path, "a\n", "a\n", "b\udcff 'q' $x\n") == (0, "b\udcff 'q' $x\n")
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_a_file_that_was_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    assert _replaced(tmp_path, "by somebody else\n", "a\n", "b\n") == (1, "by somebody else\n")


CREATE = Create(
    template="local:vztmpl/debian.tar.zst", public_key="ssh-ed25519 AAAA", address="10.0.0.5/24", gateway="10.0.0.1"
)


@pytest.mark.parametrize("box", [LXC, PVE, INCUS])
def test_a_container_is_made_once_and_under_its_lock(box: Kind) -> None:
    wished = CREATE.model_copy(update={"storage": "local-zfs", "address": "dhcp"})
    absent = replace(FRESH, config=None, state="absent")
    (command,) = create._inner(box=box, wish=wished, hostname="gpu01", look=lambda: absent)
    assert command.get_raw_value().startswith(LOCKED.format(box.container))
    assert [*create._inner(box=box, wish=wished, hostname="gpu01", look=lambda: FRESH)] == []


def test_what_a_kind_cannot_make_names_the_container() -> None:
    with pytest.raises(OperationError, match=r"gpu01 on pve01: create\.address is 10\.0\.0\.5/24"):
        next(create._inner(box=INCUS, wish=CREATE, hostname="gpu01", look=lambda: replace(FRESH, config=None)))


@pytest.mark.pain("P83")
def test_the_way_in_is_made_through_the_hypervisor_where_it_is_lacking() -> None:
    assert [*way_in._inner(box=PVE, wish=CREATE, look=lambda: True)] == []
    (command,) = way_in._inner(box=PVE, wish=CREATE, look=lambda: False)
    assert command.get_raw_value().startswith(LOCKED.format("101") + "'/usr/sbin/pct exec 101 -- /usr/bin/env PATH=")
    assert CREATE.public_key in command.get_raw_value()


def test_creation_by_pct() -> None:
    wished = CREATE.model_copy(update={"storage": "local-zfs", "cores": 32, "memory_mib": 65536, "unprivileged": True})
    (words,) = creation(PVE, wished, "gpu-box", "v2")
    assert words[:6] == ["/usr/sbin/pct", "create", "101", "local:vztmpl/debian.tar.zst", "--hostname", "gpu-box"]
    line = " ".join(words)
    assert "--rootfs local-zfs:64 " in line
    assert "--net0 name=eth0,bridge=vmbr0,ip=10.0.0.5/24,gw=10.0.0.1 --unprivileged 1 --cores 32 --memory 65536" in line


def test_creation_by_incus_takes_its_address_from_the_network() -> None:
    wished = CREATE.model_copy(update={"address": "dhcp", "gateway": None, "template": "images:debian/12"})
    first, second = creation(INCUS, wished, "gpu01", "v2")
    assert first[:4] == ["/usr/bin/incus", "init", "images:debian/12", "gpu01"]
    assert second[-4:] == ["nic", "nictype=bridged", "parent=vmbr0", "name=eth0"]


def test_creation_of_plain_lxc_is_whole_or_not_at_all(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("sbin", "etc"):
        (root / folder).mkdir(parents=True)
    (root / "etc/resolv.conf").symlink_to("../run/nowhere")
    (root / "sbin/init").write_text("")
    (root / "sbin/init").chmod(0o755)
    archive = tmp_path / "root.tar"
    subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
    wished = CREATE.model_copy(update={"template": str(archive), "lines": ["lxc.apparmor.profile = unconfined"]})
    ((_, _, text),) = creation(Kind("lxc", "new"), wished, "gpu01", "v2")
    home = tmp_path / "lxc"
    home.mkdir()
    line = text.replace("/var/lib/lxc", str(home))
    broken = line.replace(str(archive), str(tmp_path / "absent.tar"))
    assert subprocess.run(["sh", "-c", broken], check=False, capture_output=True).returncode
    assert not (home / "new").exists()
    subprocess.run(["sh", "-c", line], check=True)
    assert [path.name for path in home.iterdir()] == ["new"]
    assert (home / "new/rootfs/etc/hostname").read_text() == "gpu01\n"
    assert len((home / "new/rootfs/etc/machine-id").read_text()) == 33
    assert not (home / "new/rootfs/etc/resolv.conf").is_symlink()
    config = (home / "new/config").read_text()
    assert "lxc.uts.name = gpu01\n" in config
    assert config.endswith("lxc.apparmor.profile = unconfined\n")
    assert hashlib.sha256((home / "new/rootfs/sbin/init").read_bytes()).hexdigest().startswith("e3b0")
