"""What a look by ssh says when there is no looking: what ssh said, what is needed, what to do."""

import stat
from pathlib import Path
from typing import Any

import pytest

from gpubox.support import ssh
from gpubox.support.errors import CannotTellError


@pytest.fixture
def saying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a stand-in of ssh into the path that says the text and ends with the code."""

    def put(text: str, code: int) -> None:
        program = tmp_path / "ssh"
        program.write_text(f"#!/bin/sh\ncat >/dev/null\ncat <<'END' >&2\n{text}\nEND\nexit {code}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return put


CHANGED = "@ HOST IDENTIFICATION HAS CHANGED! @\nHost key for gpu-a has changed\nHost key verification failed."


@pytest.mark.parametrize(
    ("said", "code", "connection", "needed", "todo"),
    [
        (CHANGED, 255, {}, "host key", "ssh-keygen -R gpu-a;"),
        (CHANGED, 255, {"ssh_port": 2222, "ssh_known_hosts_file": "/k"}, "host key", "-R '[gpu-a]:2222' -f /k;"),
        ("root@gpu-a: Permission denied (publickey).", 255, {"ssh_user": "root"}, "by key", "ssh-copy-id root@gpu-a,"),
        (
            "Permission denied (publickey).",
            255,
            {"ssh_key": "/i", "ssh_port": 2},
            "by key",
            "ssh -p 2 -i /i gpu-a must",
        ),
        ("ssh: connect to host gpu-a port 22: No route to host", 255, {}, "answers ssh", "is it up"),
        ("", 255, {}, "answers ssh", "try ssh gpu-a"),
        ("sudo: a password is required", 1, {"_sudo": True}, "as root", "NOPASSWD"),
        ("sh: 1: sudo: not found", 127, {"_sudo": True}, "as root", "root itself"),
    ],
)
def test_each_failure_has_its_cure(
    saying: Any, said: str, code: int, connection: dict[str, Any], needed: str, todo: str
) -> None:
    saying(said, code)
    with pytest.raises(CannotTellError) as error:
        ssh.run("gpu-a", connection, "true")
    assert needed in error.value.needed
    assert todo in error.value.todo
    assert said.splitlines()[-1:] == [] or said.splitlines()[-1] in error.value.found


def test_an_address_is_no_option() -> None:
    with pytest.raises(Exception, match="the address"):
        ssh.command("-oProxyCommand=x", {})
