"""What the system must have: one list, installed as root with apt, else one line that says what to run."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubox.cli.lab import command
from gpubox.lab import paths

TOOLS = ("sh", "cat", "sort", "grep", "echo", "dirname")
"""What the script itself calls; all else is missing on the machine that the tests make up."""


@dataclass(frozen=True)
class Machine:
    """A folder of programs, as all that there is on PATH."""

    bin: Path

    def has(self, name: str, text: str = "exit 0") -> None:
        """Put a program there that does this."""
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    def ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run the script there."""
        # folders for superusers are added by the script itself: what they hold of a real machine must not count
        script = paths.system_packages().read_text().replace("PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin", ":")
        environment = {"PATH": str(self.bin), "PYTHON": "python3"}
        return subprocess.run(["sh", "-c", script, "sh", *words], env=environment, capture_output=True, text=True)

    def calls(self) -> list[str]:
        """What apt-get was asked for."""
        log = self.bin / "calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in TOOLS:
        real = shutil.which(name)
        assert real
        (tmp_path / name).symlink_to(os.path.realpath(real))
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("command", "user", "apt", "says"),
    [
        ("venv", 1000, True, "make venv: missing here: python3 python3-venv; run: sudo apt-get install "),
        ("demo", 1000, True, "run: sudo make demo"),
        ("test", 1000, True, "run: sudo make test"),
        ("test", 1000, False, "run: sudo make test"),
        ("unit", 0, False, "and no apt-get; on Debian or Ubuntu run: apt-get install "),
        ("demo", 0, False, "and no apt-get; on Debian or Ubuntu run: apt-get install "),
    ],
)
def test_who_cannot_install_is_told_in_one_line(
    machine: Machine, command: str, user: int, apt: bool, says: str
) -> None:
    machine.has("id", f"echo {user}")
    if apt:
        machine.has("apt-get", f'echo "$@" >> {machine.bin}/calls')
    done = machine.ask(command)
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert machine.calls() == []


def test_root_with_apt_gets_what_is_missing_and_nothing_else(machine: Machine) -> None:
    machine.has("id", "echo 0")
    # a broken foreign source must not stop what the others can give
    machine.has("apt-get", f'echo "$@" >> {machine.bin}/calls; [ "$1" != update ]')
    machine.has("python3")
    machine.has("ssh")
    assert machine.ask("demo").returncode == 0
    update, install = machine.calls()
    assert update.startswith("update")
    asked = [word for word in install.split() if word != "install" and word[0] != "-" and ":" not in word]
    assert "lxc" in asked
    assert "debootstrap" in asked
    assert not {"openssh-client", "python3-venv", "chromium"} & set(asked)


def test_what_apt_refuses_ends_it_with_the_command(machine: Machine) -> None:
    machine.has("id", "echo 0")
    machine.has("apt-get", "echo E: Unable to locate package >&2; exit 100")
    done = machine.ask("venv")
    assert done.returncode == 1
    assert "E: Unable to locate package" in done.stderr
    assert "then run: apt-get install --no-install-recommends python3" in done.stderr.splitlines()[-1]


def test_nothing_is_missing_where_all_is_there(machine: Machine) -> None:
    machine.has("id", "echo 0")
    missing = machine.ask("--missing", "unit").stdout.split()
    for name in ("python3", "systemd-analyze", "ssh", "setpriv", "ip"):
        machine.has(name)
    certificates = Path("/etc/ssl/certs/ca-certificates.crt").exists()
    assert machine.ask("--missing", "unit").stdout.split() == ([] if certificates else ["ca-certificates"])
    assert {"iproute2", "openssh-client", "systemd"} <= set(missing)


@pytest.mark.parametrize("other", ["chromium", "google-chrome"])
def test_either_of_two_programs_will_do(machine: Machine, other: str) -> None:
    assert "chromium" in machine.ask("--missing", "test").stdout.split()
    machine.has(other)
    assert "chromium" not in machine.ask("--missing", "test").stdout.split()


@pytest.mark.parametrize("words", [[], ["everything"], ["--missing"], ["--missing", "lab-up"]])
def test_another_word_is_an_error(machine: Machine, words: list[str]) -> None:
    done = machine.ask(*words)
    assert done.returncode == 2
    assert "one of: venv, unit, lab, demo, test" in done.stderr


@pytest.mark.parametrize("path", ["/usr/bin:/bin", "/usr/sbin:/usr/bin:/sbin:/bin", None])
def test_programs_of_root_are_found_whoever_became_root(
    path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBOX_LAB_DIR", str(tmp_path))
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    CliRunner().invoke(command, ["status"])
    found = os.environ["PATH"].split(":")
    assert {"/usr/sbin", "/sbin"} <= set(found)
    assert len(found) == len(set(found))
