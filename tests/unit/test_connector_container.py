"""The connectors into a container, with stand-ins of lxc-attach, pct and incus that record what they were given.

The inner ssh connection is stood in by a local shell; everything between it and the container's own shell is real.
"""

import io
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import ConnectError, InventoryError
from pyinfra.api.hiddenvalue import HiddenValue
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpubox.connectors.container import ContainerConnector, IncusConnector, LxcConnector, PctConnector

# writes its arguments as a JSON line, then plays the container: runs what stands after "--"
STAND_IN = """#!/usr/bin/python3
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:2] in (["status"], ["list"]) or "-sH" in sys.argv:
    print({state!r})
    sys.exit(0)
words = sys.argv[sys.argv.index("--") + 1:]
os.environ.clear()
os.execvp(words[0], words)
"""
PROGRAMS = {
    LxcConnector: ("/usr/bin/lxc-attach", ["-n", "gpu01", "--clear-env"]),
    PctConnector: ("/usr/sbin/pct", ["exec", "gpu01"]),
    IncusConnector: ("/usr/bin/incus", ["exec", "gpu01"]),
}
KINDS = pytest.mark.parametrize("kind", list(PROGRAMS), ids=lambda kind: kind.handle)


class LocalShell:
    """In place of the ssh connection: commands run here, with the stand-ins for the hypervisor's programs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.client = folder, self

    def local(self, command: str) -> str:
        """The command line with the programs' absolute paths pointing at the stand-ins."""
        for program in ("/usr/bin/lxc-attach", "/usr/bin/lxc-info", "/usr/sbin/pct", "/usr/bin/incus"):
            command = command.replace(program, str(self.folder / Path(program).name))
        return command

    def connect(self) -> None: ...

    def run_shell_command(self, command: StringCommand, **arguments: Any) -> tuple[bool, CommandOutput]:
        line = self.local(command.get_raw_value())
        given = (arguments.get("_stdin") or "").encode()
        done = subprocess.run(["sh", "-c", line], input=given, capture_output=True, check=False)
        texts = [("stdout", done.stdout), ("stderr", done.stderr)]
        lines = [OutputLine(name, line) for name, text in texts for line in text.decode().splitlines()]
        return done.returncode in (arguments.get("_success_exit_codes") or [0]), CommandOutput(lines)

    def exec_command(self, command: str) -> tuple[Any, Any, Any]:
        pipe = subprocess.PIPE
        run = subprocess.Popen(["sh", "-c", self.local(command)], stdin=pipe, stdout=pipe, stderr=pipe)
        channel = SimpleNamespace(shutdown_write=lambda: run.stdin and run.stdin.close(), recv_exit_status=run.wait)
        stdin = SimpleNamespace(write=lambda chunk: run.stdin and run.stdin.write(chunk), channel=channel)
        stdout = SimpleNamespace(read=lambda size: run.stdout.read(size) if run.stdout else b"", channel=channel)
        return stdin, stdout, run.stderr


def _connector(kind: type[ContainerConnector], folder: Path, state: str = "RUNNING") -> ContainerConnector:
    for name in ("lxc-attach", "lxc-info", "pct", "incus"):
        (folder / name).write_text(STAND_IN.format(log=str(folder / "log"), state=state))
        (folder / name).chmod(0o755)
    data = SimpleNamespace(get=lambda key, default: {"container_name": "gpu01"}.get(key, default))
    host = SimpleNamespace(data=data, print_prefix="", name="gpu01", connector_data={})
    connector = kind(cast(State, SimpleNamespace()), cast(Host, host))
    connector.ssh = cast(Any, LocalShell(folder))
    return connector


def _recorded(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


@KINDS
@pytest.mark.pain("P83")
def test_the_program_gets_its_words_whole(kind: type[ContainerConnector], tmp_path: Path) -> None:
    done, output = _connector(kind, tmp_path).run_shell_command(StringCommand("echo", QuoteString("it's $HOME  `a`;")))
    assert (done, output.stdout) == (True, "it's $HOME  `a`;")
    (words,) = _recorded(tmp_path)
    before = PROGRAMS[kind][1]
    assert words[: len(before) + 2] == [*before, "--", "/usr/bin/env"]
    assert words[len(before) + 2].startswith("PATH=/usr/local/sbin:")  # pct exec's own PATH is another
    assert words[len(before) + 3] == "HOME=/root"  # lxc-attach gives none


@KINDS
def test_exit_codes_and_both_streams_come_through(kind: type[ContainerConnector], tmp_path: Path) -> None:
    connector = _connector(kind, tmp_path)
    done, output = connector.run_shell_command(StringCommand("echo out; echo err >&2; exit 7"))
    assert (done, output.stdout, output.stderr) == (False, "out", "err")
    assert connector.run_shell_command(StringCommand("exit 7"), _success_exit_codes=[7])[0]


@KINDS
def test_stdin_and_environment_come_through(kind: type[ContainerConnector], tmp_path: Path) -> None:
    command = StringCommand('cat; echo "$GREETING"')
    _, output = _connector(kind, tmp_path).run_shell_command(command, _stdin="a\nb\n", _env={"GREETING": "c 'd' \"e\""})
    assert output.stdout == "a\nb\nc 'd' \"e\""


@KINDS
def test_large_binary_files_go_in_and_out_whole(kind: type[ContainerConnector], tmp_path: Path) -> None:
    connector, blob = _connector(kind, tmp_path), bytes(range(256)) * 20_000
    target = tmp_path / "with 'quotes' and blanks"
    assert connector.put_file(io.BytesIO(blob), str(target))
    assert target.read_bytes() == blob
    back = io.BytesIO()
    assert connector.get_file(str(target), back)
    assert back.getvalue() == blob


def test_text_goes_in_as_bytes(tmp_path: Path) -> None:
    assert _connector(LxcConnector, tmp_path).put_file(io.StringIO("grüße\n"), str(tmp_path / "t"))
    assert (tmp_path / "t").read_text() == "grüße\n"


def test_a_file_that_cannot_be_written_or_read_is_a_failure(tmp_path: Path) -> None:
    connector = _connector(LxcConnector, tmp_path)
    assert not connector.put_file(io.BytesIO(b"x" * 1_000_000), str(tmp_path / "no/such/folder"))
    assert not connector.get_file(str(tmp_path / "absent"), io.BytesIO())


@KINDS
@pytest.mark.parametrize(
    ("state", "runs"), [("RUNNING", True), ("status: running", True), ("STOPPED", False), ("", False)]
)
def test_a_container_that_does_not_run_is_said_so(
    kind: type[ContainerConnector], state: str, runs: bool, tmp_path: Path
) -> None:
    connector = _connector(kind, tmp_path, state)
    if runs:
        connector.connect()
        return
    with pytest.raises(ConnectError, match="container gpu01 on the hypervisor is not running"):
        connector.connect()


@KINDS
def test_names(kind: type[ContainerConnector]) -> None:
    (named,) = kind.make_names_data("10.0.0.1:101")
    data = {"ssh_hostname": "10.0.0.1", "container_name": "101"}
    assert named == (f"@{kind.handle}/10.0.0.1:101", data, [f"@{kind.handle}"])
    with pytest.raises(InventoryError, match=f"write @{kind.handle}/HYPERVISOR:CONTAINER"):
        list(kind.make_names_data("101"))


def test_secrets_stay_masked_in_what_is_printed(tmp_path: Path) -> None:
    line = _connector(PctConnector, tmp_path).inside(StringCommand("echo", HiddenValue("hush")))
    assert "hush" in line.get_raw_value()
    assert "hush" not in line.get_masked_value()
