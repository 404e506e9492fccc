"""Proxmox VE's configuration of a container: tests/cases/proxmox/NAME/{ask.yaml,in.conf,out.conf}."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpubox.hypervisor.nodes import Node, needed
from gpubox.hypervisor.proxmox_config import (
    changed_lines,
    main_part,
    own_lines,
    stale_entries,
    unprivileged,
    with_devices,
)
from gpubox.support.errors import GpuboxError

CASES = sorted((Path(__file__).parents[1] / "cases/proxmox").iterdir())
NODES = needed("195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n", [0, 1])


def _case(folder: Path) -> tuple[str, str, tuple[int, ...]]:
    ask = yaml.safe_load((folder / "ask.yaml").read_text())
    before, after = ((folder / name).read_bytes().decode() for name in ("in.conf", "out.conf"))
    return before, after, tuple(ask["version"])


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
@pytest.mark.pain("P04")
def test_entries_are_as_wanted(folder: Path) -> None:
    before, after, version = _case(folder)
    assert with_devices(before, NODES, version) == after


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
@pytest.mark.pain("P04")
def test_second_run_changes_nothing(folder: Path) -> None:
    _, after, version = _case(folder)
    assert with_devices(after, NODES, version) == after


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_a_file_without_its_last_newline_gains_only_that(folder: Path) -> None:
    before, after, version = _case(folder)
    assert with_devices(before.rstrip("\n"), NODES, version).rstrip("\n") == after.rstrip("\n")


def test_what_proxmox_makes_of_our_file_is_left_alone() -> None:
    """It sorts the keys at each change of its own."""
    ours = with_devices("hostname: a\narch: amd64\n", NODES, (5, 2, 0))
    sorted_by_proxmox = "".join(sorted(ours.splitlines(keepends=True)))
    assert with_devices(sorted_by_proxmox, NODES, (5, 2, 0)) == sorted_by_proxmox


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lock: backup\n", "(?s)locked .backup..*pct unlock ID$"),
        ("lock: create\n", "(?s)locked .create..*half made: pct unlock ID && pct destroy ID$"),
        ("template: 1\n", "template"),
        ("".join(f"dev{n}: /dev/sd{n}\n" for n in range(256)), "all 256 dev entries"),
    ],
)
def test_what_cannot_be_done_is_said(text: str, message: str) -> None:
    with pytest.raises(GpuboxError, match=message):
        with_devices(text, NODES, (5, 2, 0))


def test_a_lock_of_a_snapshot_is_not_the_containers() -> None:
    assert "dev0" in with_devices("arch: amd64\n\n[snap]\nlock: x\n", NODES, (5, 2, 0))


@pytest.mark.pain("P03")
def test_a_new_major_changes_nothing_where_entries_are_by_path() -> None:
    text = with_devices("arch: amd64\n", NODES, (5, 2, 0))
    moved = [Node(node.path, 409, node.minor) for node in NODES]
    assert with_devices(text, moved, (5, 2, 0)) == text


def test_own_lines_and_privilege() -> None:
    raw = "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind"
    text = f"unprivileged: 1\n{raw}\n\n[snap]\nlxc.mount.entry: /dev/nvidia1 x\n"
    assert own_lines(text) == ["lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind"]
    assert unprivileged(text)
    assert not unprivileged("arch: amd64\n\n[snap]\nunprivileged: 1\n")


NEW, OLD = (5, 2, 0), (4, 4, 7)
CAP = "dev9: /dev/nvidia-caps/nvidia-cap1,mode=0666"


@pytest.mark.parametrize("version", [NEW, OLD])
@pytest.mark.parametrize(
    "line",
    [
        "dev5: /dev/nvidia-fs0",
        "dev5: /dev/nvidia-nvswitch0,mode=0666",
        "dev5: /dev/nvidia-nvlink",
        "dev5: /dev/nvidia-caps/nvidia-cap1",
        "dev5: /dev/nvidia-caps/nvidia-cap2,mode=0666,gid=44",
        "dev5: /dev/nvidia-caps-imex-channels/channel0",
        "dev5: /dev/nvidia0;mode=0666",
        CAP,
        "lxc.mount.entry: /dev/nvidia-caps dev/nvidia-caps none bind,optional,create=dir",
        "lxc.mount.entry = /dev/nvidia-fs0 dev/nvidia-fs0 none bind,optional,create=file 0 0",
        "lxc.mount.entry: /dev/nvidia-modeset dev/nvidia-modeset none bind,create=file",
        "lxc.cgroup2.devices.allow: c 236:* rwm",
        "#dev5: /dev/nvidia7",
        " dev5: /dev/nvidia7",
        "[9lives]",
        "description: dev5%3A /dev/nvidia7",
    ],
)
def test_a_persons_own_line_stays(line: str, version: tuple[int, ...]) -> None:
    text = f"arch: amd64\n{line}\nhostname: a\n"
    for nodes in (NODES, []):
        assert line in with_devices(text, nodes, version).splitlines()


@pytest.mark.parametrize(
    ("line", "nodes", "stays"),
    [
        ("dev5: /dev/nvidia7,gid=44", NODES, False),
        ("dev5: /dev/nvidia7,mode=0666", NODES, False),
        ("dev5: path=/dev/nvidia0,gid=44", NODES, False),
        ("dev5: /dev/nvidiactl,mode=0666", [], False),
        ("dev5: /dev/nvidiactl,mode=0666", NODES, True),
        ("dev5: /dev/nvidiactl,mode=0777", NODES, True),
        ("dev5: /dev/nvidiactl,mode=0666,deny-write=no", NODES, True),
        ("dev5: /dev/nvidiactl,mode=0666,deny-write=Yes", NODES, False),
        ("dev5: /dev/nvidiactl,gid=44", [], True),
        (CAP, [*NODES, Node("/dev/nvidia-caps/nvidia-cap7", 236, 7)], False),
    ],
)
def test_what_is_changed_is_told(line: str, nodes: list[Node], stays: bool) -> None:
    text = f"arch: amd64\n{line}\n"
    after = with_devices(text, nodes, NEW)
    assert (line in after.splitlines()) == stays
    assert changed_lines(text, after) == [] if stays else line in changed_lines(text, after)[0]


def test_what_becomes_of_a_line_is_said() -> None:
    text = "dev5: /dev/nvidia7,gid=44\ndev6: /dev/nvidia0,gid=44\n"
    assert changed_lines(text, with_devices(text, NODES, NEW)) == [
        "'dev5: /dev/nvidia7,gid=44' is taken out",
        "'dev6: /dev/nvidia0,gid=44' becomes 'dev6: /dev/nvidia0,mode=0666,gid=44'",
    ]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        *[(word, True) for word in ("1", "on", "yes", "true", "On", "YES", "True")],
        *[(word, False) for word in ("0", "off", "no", "false", "OFF", "No")],
        ("2", True),  # check_type refuses it, the text stays, and any text but 0 is true in Perl
        ("maybe", True),
        ("yes \r", True),
        ("no\t", False),
    ],
)
def test_a_boolean_is_what_proxmox_reads(value: str, meant: bool) -> None:
    """PVE::JSONSchema::parse_boolean, PVE::LXC::Config::check_type and parse_pct_config."""
    assert unprivileged(f"arch: amd64\nunprivileged: {value}\n") == meant
    text = f"template: {value}\n"
    if not meant:
        assert with_devices(text, [], NEW) == text
        return
    with pytest.raises(GpuboxError, match="template"):
        with_devices(text, [], NEW)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("unprivileged: 0\nunprivileged: 1\n", True),  # the last of equal keys counts
        ("unprivileged: 1\nunprivileged: 0\n", False),
        ("unprivileged:1\n", True),
        ("unprivileged : 1\n", False),  # no line of parse_pct_config's
        (" unprivileged: 1\n", False),
        ("#unprivileged: 1\n", False),
        ("Unprivileged: 1\n", False),
        ("unprivileged: 1\r\n", True),
        ("lxc.idmap: u 0 100000 65536\n", True),  # PVE::LXC::update_lxc_config: a map of the person's own
        ("lxc.idmap = u 0 100000 65536\n", True),
        ("[snap]\nunprivileged: 1\n", False),
    ],
)
def test_a_line_is_what_proxmox_reads(text: str, meant: bool) -> None:
    """PVE::LXC::Config::parse_pct_config."""
    assert unprivileged(text) == meant


@pytest.mark.parametrize(
    ("header", "is_one"),
    [
        ("[pve:pending]", True),
        ("[PVE:Pending]  ", True),
        ("[pve:pending]\r", True),
        ("[pve:other]", False),
        ("[special:fleecing]", False),
        ("[9lives]", False),
        ("[_x]", False),
        ("[a]", False),
        ("[ab]", True),
        ("[Before-Upgrade_2]\t", True),
        ("[two words]", False),
        ("[ab] # mine", False),
        (" [ab]", False),
        ("[\u212aelvin]", False),  # that letter folds to k, but not for Perl on bytes
        ("[]", False),
    ],
)
def test_a_header_is_what_proxmox_takes_for_one(header: str, is_one: bool) -> None:
    """PVE::LXC::Config::parse_pct_config; PVE::JSONSchema's configid for snapshots."""
    text = f"arch: amd64\n{header}\ntemplate: 1\n"
    assert ("template" not in main_part(text)) == is_one
    assert ("template" in main_part(text)) == (not is_one)


def test_of_two_pending_sections_the_last_counts() -> None:
    """parse_pct_config begins a new, empty one at each header."""
    text = "arch: amd64\n\n[pve:pending]\ndev0: /dev/nvidia0\n\n[pve:pending]\ndev1: /dev/nvidia1\n"
    after = with_devices(text, NODES, NEW)
    assert "[pve:pending]\ndev0: /dev/nvidia0\n" in after
    assert after.endswith("[pve:pending]\ndev1: /dev/nvidia1,mode=0666\n")
    assert "dev0: /dev/nvidia0,mode=0666" in main_part(after)


def test_a_pending_entry_that_goes_leaves_no_card_behind_it() -> None:
    text = "dev0: /dev/nvidia7\n[pve:pending]\ndev0: /dev/nvidia8\n"
    assert "nvidia7" not in with_devices(text, NODES, NEW)
    kept = with_devices("dev0: /dev/video0\n[pve:pending]\ndev0: /dev/nvidia8\n", NODES, NEW)
    assert "dev0: /dev/video0" in main_part(kept)


def test_an_entry_of_a_node_that_is_gone_is_named() -> None:
    """PVE::LXC::Tools::get_device_mode_and_rdev: the container does not start."""
    text = f"dev0: /dev/nvidia0\n{CAP}\ndev3: /dev/video0\n[snap]\ndev4: /dev/nvidia4\n"
    assert stale_entries(text, {node.path: node for node in NODES}) == [CAP]


LINES = st.sampled_from(
    [
        *("arch: amd64", "hostname: a", "unprivileged: yes", "unprivileged: 0", "lxc.idmap: u 0 1 2", "garbage", ""),
        *("dev1: /dev/nvidia-fs0", "dev2: /dev/video0,gid=44", "dev3: /dev/dri/card0", "dev300: /dev/nvidia-caps/x"),
        *("[9lives]", "[snap]", "[pve:pending]", "[PVE:PENDING]", "[special:x]", "[a]", " [ab]", "delete: dev2,!dev3"),
        *(
            "#dev0: /dev/nvidia0",
            "description: x",
            "snapstate: delete",
            "lxc.mount.entry = /dev/nvidia-caps d none bind",
        ),
        *(
            "dev0: /dev/nvidia0",
            "dev4: /dev/nvidia7,gid=44",
            "dev5: path=/dev/nvidiactl",
            "dev2: /dev/nvidia0,mode=0666",
        ),
    ]
)
FOREIGN = re.compile(r"dev\d+: (?:path=)?/dev/nvidia(?:\d|ctl)|unprivileged|lxc\.prlimit")


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n"]), st.sampled_from([NEW, OLD]))
def test_every_line_that_is_not_ours_comes_out_as_it_went_in(
    lines: list[str], end: str, version: tuple[int, ...]
) -> None:
    text = "".join(f"{line}{end}" for line in lines)
    after = with_devices(text, NODES, version)
    assert with_devices(after, NODES, version) == after
    rest = iter(after.splitlines(keepends=True))
    for line in text.splitlines(keepends=True):
        if not FOREIGN.match(line):
            assert line in rest, line  # in the same order, byte for byte
