"""What is seen of a service's processes, in a /proc that a test makes, and in the real one."""

import os
from pathlib import Path

import pytest

from gpubox.remote import proc, seen
from gpubox.remote.seen import Seen, look, shown

ARGV = ["python3", "-m", "sglang.launch_server", "--model-path", "/m"]


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two processes in one control group; the second waits for a disk."""
    monkeypatch.setattr(proc, "PROC", tmp_path / "proc")
    monkeypatch.setattr(seen, "GROUPS", tmp_path / "cgroup")
    for pid, state, ticks, read in ((7, "S", 100, 5), (8, "D", 300, 2 << 20)):
        folder = tmp_path / f"proc/{pid}"
        folder.mkdir(parents=True)
        (folder / "cmdline").write_bytes("".join(f"{word}\0" for word in ARGV).encode())
        (folder / "stat").write_text(f"{pid} (a) b) {state} 1 {'0 ' * 9}{ticks} 0 0 0 20 0 1\n")
        (folder / "io").write_text(f"rchar: {read}\nwchar: 9\nread_bytes: 0\n")
    group = tmp_path / "cgroup/system.slice/u.service"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("7\n8\n")
    return group


def test_all_processes_of_the_unit_count(service: Path) -> None:
    found = look(7, "/system.slice/u.service")
    assert (found.main, found.words, found.state, found.count) == (7, tuple(ARGV), "S", 2)
    assert found.cpu_s == 400 / os.sysconf("SC_CLK_TCK")
    assert (found.read, found.on_disk) == (5 + (2 << 20), True)
    assert found.told().startswith("process 7 (python3 -m sglang.launch_server --model-path /m) sleeps, ")
    assert found.told().endswith("s of CPU in 2 processes")


def test_a_process_that_is_gone_is_none(service: Path) -> None:
    (service / "cgroup.procs").write_text("")
    assert (look(0, "/system.slice/u.service").count, look(0, "/system.slice/u.service").told()) == (
        0,
        "no main process",
    )
    assert look(0, "/system.slice/other.service").count is None


def test_this_process_is_seen() -> None:
    found = look(os.getpid(), "/nowhere")
    assert found.words
    assert found.cpu_s > 0


@pytest.mark.parametrize(
    ("words", "asked_for"),
    [(ARGV, True), (["sglang::http_server"], True), ([], True), (["sleep", "9"], False), ([*ARGV, "--more"], False)],
)
def test_whether_the_main_process_is_the_server(words: list[str], asked_for: bool) -> None:
    assert Seen(7, tuple(words)).is_asked_for(ARGV) is asked_for
    assert Seen(7, tuple(words)).is_asked_for([]) is True


@pytest.mark.parametrize(
    ("after", "moved"),
    [
        (Seen(7, cpu_s=1.4, read=100), False),
        (Seen(7, cpu_s=1.6, read=100), True),
        (Seen(7, cpu_s=1, read=100 + (1 << 20)), True),
        (Seen(7, cpu_s=1, read=100, on_disk=True), True),
        (Seen(8, cpu_s=0, read=0), True),
    ],
)
def test_what_counts_as_moving(after: Seen, moved: bool) -> None:
    assert after.moved_since(Seen(7, cpu_s=1, read=100)) is moved


def test_a_command_line_is_shown_without_secrets_and_cut() -> None:
    text = shown(["x", "--api-key", "sekret", "--hf-token=hf_abc", "--admin-api-key", "other", "--port", "1"])
    assert text == "x --api-key *** --hf-token=*** --admin-api-key *** --port 1"
    assert len(shown(["x" * 500])) == seen._SHOWN
