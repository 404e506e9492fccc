"""What binds a process, against what a login has."""

from pathlib import Path

import pytest

from gpubox.remote import bindings

LOGIN = """Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max processes             1000                 1000                 processes
Max open files            1024                 1048576              files
Max locked memory         8388608              8388608              bytes
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("00400000 default file=/usr/bin/python3.11 mapped=1 N0=1", {}),
        ("00400000 bind:0 file=/usr/bin/python3.11", {"numa_policy": "bind", "numa_nodes": "0"}),
        ("00400000 bind=static:0-1 file=/x", {"numa_policy": "bind", "numa_nodes": "0-1"}),
        ("7f00 interleave:0-3 anon=1", {"numa_policy": "interleave", "numa_nodes": "0-3"}),
        ("7f00 prefer:1", {"numa_policy": "preferred", "numa_nodes": "1"}),
        ("7f00 local anon=1", {"numa_policy": "local"}),
        ("7f00 prefer (many):0-1 anon=1", {"told": ["NUMA policy prefer (many):0-1"]}),
        ("7f00 weighted interleave:0-1", {"told": ["NUMA policy weighted interleave:0-1"]}),
        ("", {}),
    ],
)
def test_memory_policies(line: str, found: dict[str, object]) -> None:
    assert bindings.memory_policy(line) == found


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ("", "", {}),
        ("core file size        0 ", "core file size        unlimited ", {"CORE": "infinity"}),
        ("open files            1024", "open files            65535", {}),  # SGLang raises it itself
        ("open files            1024", "open files            1048576", {}),  # as the unit
        ("open files            1024", "open files            2097152", {"NOFILE": "2097152"}),
        ("stack size            8388608", "stack size            67107840", {}),  # SGLang again
        ("stack size            8388608", "stack size            unlimited", {"STACK": "infinity"}),
        ("locked memory         8388608", "locked memory         unlimited", {}),  # as the unit
        ("processes             1000", "processes             64", {"NPROC": "64"}),
    ],
)
def test_limits(was: str, now: str, found: dict[str, str]) -> None:
    assert bindings.changed_limits(LOGIN.replace(was, now) if was else LOGIN, LOGIN) == found


def test_only_what_differs_from_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubox.remote.bindings.os.sched_getscheduler", lambda _: 3)
    monkeypatch.setattr("gpubox.remote.bindings.platform.machine", lambda: "other")
    for pid, cpus, nice, score in (("self", "0-7", 0, 0), ("812", "0-3", 5, -500), ("900", "0-7", 0, 0)):
        folder = tmp_path / pid
        folder.mkdir()
        (folder / "status").write_text(f"Name:\tpython3\nCpus_allowed_list:\t{cpus}\n")
        (folder / "stat").write_text(f"{pid} (a b) S {' '.join(['0'] * 15)} {nice} 1\n")
        (folder / "oom_score_adj").write_text(f"{score}\n")
        (folder / "limits").write_text(LOGIN)
    (tmp_path / "812/numa_maps").write_text("00400000 bind:0 file=/usr/bin/python3\n7f default\n")
    assert bindings.bindings(tmp_path / "812") == {
        "cpus": "0-3",
        "numa_policy": "bind",
        "numa_nodes": "0",
        "nice": 5,
        "oom_score_adjust": -500,
        "cpu_scheduling": "batch",
    }
    monkeypatch.setattr("gpubox.remote.bindings.os.sched_getscheduler", lambda _: 0)
    assert bindings.bindings(tmp_path / "900") == {}
