"""What /proc says: of processes that a folder plays, and of one that ended meanwhile."""

from pathlib import Path

import pytest

from gpubox.remote import proc

TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0
   1: 0100007F:7530 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 0 0 10 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(proc, "PROC", tmp_path)
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(TCP)
    for pid, parent, inode in ((10, 1, 78), (7, 10, 77), (300, 7, 1)):
        process = tmp_path / str(pid)
        (process / "fd").mkdir(parents=True)
        (process / "fd/3").symlink_to(f"socket:[{inode}]")
        (process / "stat").write_text(f"{pid} (a (b) c) S {parent} 1 1 0\n")
        (process / "comm").write_text("python3\n")
    return tmp_path


def test_processes_come_by_number(folder: Path) -> None:
    assert [process.name for process in proc.processes()] == ["7", "10", "300"]


def test_who_listens_is_not_who_is_connected(folder: Path) -> None:
    assert [proc.named(process) for process in proc.listeners(30000)] == ["process 7 (python3)"]
    assert proc.listeners(30001) == []


def test_descendants(folder: Path) -> None:
    assert proc.descendants(10) == [7, 300]
    assert proc.descendants(300) == []


@pytest.mark.parametrize(
    ("groups", "unit", "within"),
    [
        ("0::/system.slice/sglang.service\n", "sglang.service", True),
        ("0::/lxc.payload.x/system.slice/sglang.service/sub\n", "sglang.service", True),
        ("0::/system.slice/my-sglang.service\n", "sglang.service", False),
        ("1:name=systemd:/system.slice/sglang.service\n0::/\n", "sglang.service", True),
        ("", "sglang.service", False),
    ],
)
def test_control_groups(folder: Path, groups: str, unit: str, within: bool) -> None:
    (folder / "7/cgroup").write_text(groups)
    assert proc.is_in(folder / "7", unit) is within


def test_a_users_own_manager_is_no_service(folder: Path) -> None:
    (folder / "7/cgroup").write_text("0::/user.slice/user-0.slice/user@0.service/app.slice/jupyter.service\n")
    assert proc.services(folder / "7") == ["jupyter.service"]


def test_one_that_ended_says_nothing(folder: Path) -> None:
    gone = folder / "9"
    assert (proc.words(gone), proc.variables(gone), proc.text(gone, "cgroup")) == ([], {}, "")
    assert (proc.link(gone, "cwd"), proc.parent(gone), proc.services(gone)) == ("", 0, [])
