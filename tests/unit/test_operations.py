"""Operations: state in, commands out; what is as wished gives none."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyinfra.api import QuoteString, StringCommand

from gpubox.facts.base import Sysctl
from gpubox.facts.cards import DriverAnswers
from gpubox.facts.packages import Package
from gpubox.operations import base, packages
from gpubox.operations.cards import driver_answers
from gpubox.operations.files import owned_files
from gpubox.support.owned_file import Entry, OwnedFile


def texts(commands: Iterator[Any]) -> list[str]:
    return [command.get_raw_value() if isinstance(command, StringCommand) else repr(command) for command in commands]


FILE = OwnedFile("/etc/a", "text\n", mode="600")
RIGHT = Entry("file", "600", "root", "root", "b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733")


@pytest.mark.parametrize(
    ("entry", "changes"),
    [
        (RIGHT, False),
        (replace(RIGHT, mode="644"), True),
        (replace(RIGHT, user="nobody"), True),
        (replace(RIGHT, sha256="0"), True),
        (Entry("absent"), True),
        (Entry("link", target="/etc/b"), True),
    ],
)
@pytest.mark.pain("P09")
def test_owned_files(entry: Entry, changes: bool) -> None:
    assert bool(texts(owned_files._inner(files=[FILE], look=lambda: {"/etc/a": entry}))) is changes


def test_a_file_is_never_readable_while_it_is_written() -> None:
    first, upload, last = texts(owned_files._inner(files=[FILE], look=lambda: {"/etc/a": Entry("absent")}))
    assert "umask 077 && : > /etc/a.gpubox-new" in first
    assert "/etc/a.gpubox-new" in upload
    assert "text" not in upload
    assert last == "chmod 600 /etc/a.gpubox-new && sync /etc/a.gpubox-new && mv -fT /etc/a.gpubox-new /etc/a"


def test_files_that_must_not_be() -> None:
    look = {"/etc/a": RIGHT, "/etc/old": RIGHT, "/etc/gone": Entry("absent")}
    commands = texts(owned_files._inner(files=[], look=lambda: look, absent=["/etc/old", "/etc/gone"]))
    assert commands == ["rm -f /etc/old"]


@pytest.mark.parametrize(
    ("wish", "met"),
    [("curl", True), ("curl=7.88", True), ("curl=8", False), ("gone", False), ("half", False), ("none", False)],
)
def test_packages(wish: str, met: bool) -> None:
    known = {"curl": Package("7.88", "ii "), "gone": Package("1", "rc "), "half": Package("1", "iU ")}
    assert packages.is_met(wish, known) is met
    assert bool(list(packages.installed._inner(names=[wish], look=lambda: known))) is not met


def test_kernel_settings_that_differ() -> None:
    present = {"a": Sysctl("rw", "1"), "b": Sysctl("rw", "1"), "c": Sysctl("ro", "1")}
    wanted: dict[str, int | str] = {"a": 1, "b": 2, "c": 2}
    assert texts(base.sysctls._inner(wanted=wanted, look=lambda: present)) == ["sysctl -q -w b=2"]


def test_time_zone() -> None:
    assert texts(base.timezone._inner(zone="Etc/UTC", look=lambda: "Etc/UTC")) == []
    assert any("/usr/share/zoneinfo/Etc/UTC" in text for text in texts(base.timezone._inner("Etc/UTC", lambda: "")))


@pytest.mark.parametrize(("said", "refused"), [([], False), (["sh: 1: cannot open /dev/nvidiactl: No such"], True)])
def test_a_stack_for_gpus_needs_a_driver(said: list[str], refused: bool) -> None:
    reason = DriverAnswers().process(said)
    assert bool(list(driver_answers._inner(stack="sglang-0.5.23-cu130", look=lambda: reason))) is refused


def test_a_secret_that_passes_through_another_users_folder_finds_it_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    way = "/tmp/pyinfra-abc"
    monkeypatch.setattr("gpubox.operations.files._way_of_an_upload", lambda path: QuoteString(way))
    commands = list(owned_files._inner(files=[FILE], look=lambda: {"/etc/a": Entry("absent")}))
    assert commands[1].get_raw_value() == f"rm -f {way} && ( umask 077 && : > {way} )"
    assert commands[1].connector_arguments == {"_sudo": False, "_su_user": ""}
    assert (
        len(list(owned_files._inner(files=[replace(FILE, mode="644")], look=lambda: {"/etc/a": Entry("absent")}))) == 3
    )
