"""Why a container is down, from the last lines of its first process."""

import pytest

from gpubox.hypervisor import last_words
from gpubox.hypervisor.kinds import Kind, Name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-12-01T10:00:05+0000 gpu01 systemd[1]: Caught <QUIT>, core dump failed (child 99).", "SIGQUIT to PID 1"),
        (
            "x systemd[1]: Caught <QUIT>, from PID 812.\nx systemd[1]: Freezing execution.",
            "let the server run",
        ),
        ("x systemd[1]: Reached target poweroff.target - System Power Off.", "it was shut down"),
        ("x systemd[1]: Received SIGRTMIN+4 from PID 0 (n/a).", "its hypervisor stopped it"),
        ("x kernel: Memory cgroup out of memory: Killed process 4 (python3)", "want of memory"),
        ("lxc-start gpu01: start.c: lxc_spawn: 1734 Failed to spawn container", "its start failed"),
        (
            "x systemd[1]: Caught <QUIT>, dumped core as pid 1580.\nx systemd[1]: Exiting PID 1...",
            "SIGQUIT to PID 1",
        ),
        ("no-journal-is-kept-in-the-container", "mkdir -p /var/log/journal"),
        ("x systemd[1]: Started something else.", "gpubox does not know why; its last words: x systemd[1]: Started"),
    ],
)
@pytest.mark.pain("P107")
def test_why_it_is_down(text: str, said: str) -> None:
    assert said in last_words.why(f"\n{text}\n")


def test_nothing_said_is_no_reason() -> None:
    assert last_words.why("\n") == ""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("lxc", ["lxc-info -n gpu01", "lxc.rootfs.path", "/var/log/lxc/gpu01.log"]),
        ("proxmox", ["pvesm path", "/etc/pve/lxc/101.conf", "pve-container@101.service"]),
        ("incus", ["/var/lib/incus/containers/gpu01/rootfs", "incus info gpu01"]),
    ],
)
def test_each_kind_is_asked_in_its_own_way(kind: Name, words: list[str]) -> None:
    asked = last_words.question(Kind(kind, "101" if kind == "proxmox" else "gpu01"))
    assert [word for word in [*words, "_PID=1"] if word not in asked] == []
