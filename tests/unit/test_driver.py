"""The driver's userland: versions, pins, the fact's text in, operations' commands out."""

import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from pyinfra.api import FileUploadCommand, StringCommand
from pyinfra.api.command import FunctionCommand

from gpubox.apt import sources
from gpubox.driver import packages as driver
from gpubox.facts.driver import DriverFact, DriverState
from gpubox.facts.packages import Package
from gpubox.operations import driver as operations
from gpubox.settings.host import RunFile
from gpubox.support.owned_file import Entry
from tests.unit.test_facts import printed

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build  (root@pve)  Mon Dec 8 2025\n"
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Jul  3 12:00:00 UTC 2025\nGCC version: 12.2.0\n"
NAMES = ("libcuda1", "libnvidia-ml1", "nvidia-smi")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (OPEN, "590.48.01"),
        (OLD, "535.261.03"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124  Wed\n", "570.124"),
        ("", None),
        ("GCC version:  gcc version 12.2.0\n", None),
    ],
)
def test_module_version(text: str, version: str | None) -> None:
    assert driver.module_version(text) == version


@pytest.mark.parametrize(
    ("version", "upstream"),
    [
        ("535.261.03-1", "535.261.03"),
        ("535.309.01-0+deb12u1", "535.309.01"),
        ("590.48.01-0ubuntu0.24.04.1", "590.48.01"),
        ("1:570.124-1", "570.124"),
        ("20220217+3~deb12u1", ""),
        ("1.17.8-1", ""),
    ],
)
def test_package_versions(version: str, upstream: str) -> None:
    assert driver.upstream(version) == upstream


OFFERS = {
    "libcuda1": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "libnvidia-ml1": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "nvidia-smi": ["535.309.01-0+deb12u1", "535.261.03-1"],
}


@pytest.mark.parametrize(
    ("offers", "module", "chosen"),
    [
        (OFFERS, "535.261.03", "535.261.03-1"),
        (OFFERS, "535.309.01", "535.309.01-0+deb12u1"),
        (OFFERS, "535.247.01", None),
        (OFFERS, "535.261", None),
        ({**OFFERS, "nvidia-smi": ["535.309.01-0+deb12u1"]}, "535.261.03", None),
        ({}, "535.261.03", None),
    ],
)
@pytest.mark.pain("P05", "P06")
def test_the_exact_version_or_none(offers: dict[str, list[str]], module: str, chosen: str | None) -> None:
    assert driver.choose(offers, NAMES, module) == chosen


@pytest.mark.parametrize(
    ("distribution", "origin", "module", "chosen", "names"),
    [
        ("debian12", "distribution", "535.261.03", [], NAMES),
        ("debian13", "distribution", "570.124.06", [], NAMES),
        ("debian12", "nvidia", "550.54.14", [], NAMES),
        ("debian12", "nvidia", "570.124.06", [], ("libcuda1", "libnvidia-ml1", "nvidia-driver-cuda")),
        ("ubuntu24.04", "distribution", "590.48.01", [], ("libnvidia-compute-590", "nvidia-utils-590")),
        ("ubuntu24.04", "nvidia", "580.95.05", [], ("libnvidia-compute-580", "nvidia-utils-580")),
        ("ubuntu24.04", "nvidia", "590.48.01", [], ("libnvidia-compute",)),
        ("ubuntu22.04", "distribution", "590.48.01", ["a-{major}", "libcuda1"], ("a-590", "libcuda1")),
    ],
)
def test_names(distribution: str, origin: str, module: str, chosen: list[str], names: tuple[str, ...]) -> None:
    assert driver.packages(distribution, origin, module, chosen) == names


@pytest.mark.parametrize(
    ("name", "kernel", "locked"),
    [
        ("nvidia-kernel-dkms", True, False),
        ("nvidia-open-590", True, False),
        ("nvidia-opencl-icd", False, True),
        ("cuda-drivers-590", True, False),
        ("nvidia-open-kernel-dkms", True, False),
        ("libnvidia-ptxjitcompiler1", False, True),
        ("nvidia-persistenced", False, False),
        ("nvidia-driver", True, False),
        ("nvidia-driver-590-open", True, False),
        ("nvidia-driver-cuda", False, True),
        ("nvidia-kernel-common-590", False, True),
    ],
)
@pytest.mark.pain("P13", "P23")
def test_kinds_of_packages(name: str, kernel: bool, locked: bool) -> None:
    assert driver.is_kernel_package(name) is kernel
    assert driver.is_locked(name, "590.48.01-1") is locked


@pytest.mark.pain("P23")
def test_of_several_records_apt_takes_the_first() -> None:
    text = driver.pins("590.48.01", NAMES, in_container=True)
    assert text.index("libcuda1 libnvidia-ml1") < text.index("nvidia-kernel* ") < text.index("libnvidia-*")
    assert text.index("nvidia-driver-cuda") < text.index("nvidia-driver* ")
    assert "Pin-Priority: -1" in text
    assert "Pin-Priority: -1" not in driver.pins("590.48.01", NAMES, in_container=False)


DEBIAN = """Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /k
"""


def test_debians_non_free() -> None:
    present = sources.parse("/etc/apt/sources.list.d/debian.sources", DEBIAN)
    text = driver.debian_sources(present)
    found = sources.parse(driver.SOURCE_FILE, text)
    assert [(s.suite, s.components, s.signed_by) for s in found] == [
        ("bookworm", ("contrib", "non-free"), "/k"),
        ("bookworm-updates", ("contrib", "non-free"), "/k"),
    ]
    assert sources.conflicts([*present, *found]) == []
    assert driver.debian_sources([*present, *found]) == text
    whole = sources.parse("/etc/apt/sources.list", "deb http://deb.debian.org/debian bookworm main contrib non-free\n")
    assert driver.debian_sources(whole) == ""


def test_the_fact() -> None:
    state = DriverFact().process(
        printed(
            distribution="debian12",
            container="lxc",
            module=OLD,
            libraries="libcuda.so.1\t/usr/lib/nvidia/current/libcuda.so.535.261.03\nlibcuda.so.1\t/opt/libcuda.so.1",
            packages="libcuda1\t535.261.03-1\thi \nnvidia-support\t20220217\tii \nnvidia-driver\t\tun ",
            offers=" libcuda1 | 535.309.01-1 | http://x.test\n libcuda1 | 535.261.03-1 | http://x.test\n",
            files="",
            automatic="libc6",
            fabric="",
        )
    )
    assert (state.module, state.in_container) == ("535.261.03", True)
    assert state.libraries == {"libcuda.so.1": ["535.261.03", "?"]}
    assert state.offers == {"libcuda1": ["535.309.01-1", "535.261.03-1"]}
    assert list(state.locked) == ["libcuda1"]


def state_of(version: str, module: str | None = "535.261.03", held: str = "hi ") -> DriverState:
    """A box with the whole userland of one version."""
    libraries = {library: [driver.upstream(version)] for library in driver.LIBRARIES}
    packages = {name: Package(version, held) for name in (*NAMES, "libnvidia-ptxjitcompiler1")}
    state = DriverState("debian12", True, module, libraries, packages, OFFERS, {})
    files = {file.path: file for file in operations.files(state, NAMES)}
    entries = {path: Entry("file", "644", "root", "root", _digest(file.data)) for path, file in files.items()}
    return replace(state, files={**entries, driver.SOURCE_FILE: Entry("absent")})


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


RIGHT = state_of("535.261.03-1")


@pytest.mark.parametrize(
    ("state", "problems"),
    [
        (RIGHT, 0),
        (replace(RIGHT, packages={}, libraries={}), 3),
        (state_of("535.309.01-0+deb12u1"), 4),
        (replace(RIGHT, libraries={**RIGHT.libraries, "libcuda.so.1": ["535.261.03", "535.309.01"]}), 1),
        (replace(RIGHT, libraries={}), 2),
        (replace(RIGHT, files={**RIGHT.files, driver.PINS: Entry("absent")}), 1),
    ],
)
@pytest.mark.pain("P05")
def test_what_is_wrong(state: DriverState, problems: int) -> None:
    assert len(operations.wrong(state, NAMES)) == problems


def texts(commands: Iterator[Any]) -> list[str]:
    found = []
    for command in commands:
        raw = command.args[0] if isinstance(command, FunctionCommand) else command
        if isinstance(raw, FileUploadCommand):
            raw = f"put {raw.dest}"
        found.append(raw.get_raw_value() if isinstance(raw, StringCommand) else str(raw))
    return found


class FakeHost:
    print_prefix = "[box] "


@pytest.fixture(autouse=True)
def _host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "host", FakeHost())


def test_nothing_to_do() -> None:
    assert texts(operations.userland._inner(origin="distribution", chosen=[], uris=[], look=lambda: RIGHT)) == []
    assert texts(operations.held._inner(look=lambda: RIGHT)) == []
    assert texts(operations.compared._inner(look=lambda: RIGHT)) == []
    assert (
        texts(
            operations.userland._inner(
                origin="distribution", chosen=[], uris=[], look=lambda: replace(RIGHT, module=None)
            )
        )
        == []
    )


def test_a_userland_that_fits_and_is_of_no_package_stays() -> None:
    installed_by_hand = replace(RIGHT, packages={})
    assert (
        texts(operations.userland._inner(origin="distribution", chosen=[], uris=[], look=lambda: installed_by_hand))
        == []
    )
    unpinned = replace(installed_by_hand, files={**RIGHT.files, driver.PINS: Entry("absent")})
    commands = texts(operations.userland._inner(origin="distribution", chosen=[], uris=[], look=lambda: unpinned))
    assert commands[1] == f"put {driver.PINS}.gpubox-new"
    assert not any("install" in command for command in commands)


def test_the_whole_set_is_held() -> None:
    (command,) = texts(operations.held._inner(look=lambda: state_of("535.261.03-1", held="ii ")))
    assert command == "apt-mark hold libcuda1 libnvidia-ml1 libnvidia-ptxjitcompiler1 nvidia-smi"


@pytest.mark.parametrize(
    ("name", "version", "in_container", "is_held"),
    [
        ("nvidia-persistenced", "535.261.03-1", True, True),
        ("nvidia-persistenced", "535.171.04-1~deb12u1", True, False),
        ("nvidia-kernel-dkms", "535.261.03-1", False, True),
        ("nvidia-kernel-dkms", "535.261.03-1", True, False),
    ],
)
def test_what_is_of_the_same_version_now_is_held_too(
    name: str, version: str, in_container: bool, is_held: bool
) -> None:
    packages = {**RIGHT.packages, name: Package(version, "ii ")}
    state = replace(RIGHT, packages=packages, in_container=in_container)
    commands = texts(operations.held._inner(look=lambda: state))
    assert commands == ([f"apt-mark hold {name}"] if is_held else [])


@pytest.mark.pain("P05")
def test_a_mismatch_names_both_versions() -> None:
    (command,) = texts(operations.compared._inner(look=lambda: state_of("535.309.01-0+deb12u1")))
    assert "kernel module 535.261.03" in command
    assert "libcuda.so.1 is 535.309.01" in command
    found, needed, _ = operations.no_such_version(state_of("535.309.01-0+deb12u1", "535.400.01"), NAMES)
    assert "535.400.01" in found
    assert "installed: 535.309.01" in found
    assert "535.400.01" in needed


RUN = RunFile(version="535.261.03", url="https://x.test/a.run", sha256="0" * 64)


@pytest.mark.parametrize(
    ("state", "files", "parts"),
    [
        (RIGHT, [RUN], []),
        (
            replace(RIGHT, packages={}, libraries={}),
            [RUN],
            ["mkdir", "curl", "sha256sum --check --quiet && sh", "rm -f"],
        ),
        (replace(RIGHT, packages={}, libraries={}), [], ["driver.runs has"]),
        (replace(RIGHT, libraries={}), [RUN], ["are installed as packages"]),
    ],
)
def test_the_installer(state: DriverState, files: list[RunFile], parts: list[str]) -> None:
    commands = texts(operations.run_file._inner(files=files, look=lambda: state))
    assert len(commands) == len(parts)
    assert all(part in command for part, command in zip(parts, commands, strict=True))
    assert all("--no-kernel-modules" in command for command in commands if " sh " in command)


@pytest.mark.parametrize(
    "name",
    ["nvidia-driver-580", "nvidia-dkms-580", "libnvidia-compute-580", "libcuda1", "nvidia-fabricmanager-580"],
)
@pytest.mark.pain("P98")
def test_what_unattended_upgrades_leaves_alone(name: str) -> None:
    """Its blacklist are regular expressions, matched at the beginning of a name."""
    expressions = re.findall(r'"(\^[^"]+)"', driver.unattended())
    assert any(re.match(expression, name) for expression in expressions)


@pytest.mark.pain("P98")
def test_on_bare_metal_the_kernel_packages_of_that_version_are_held_too() -> None:
    names = ("libnvidia-compute-580", "nvidia-dkms-580", "nvidia-kernel-source-580", "nvidia-persistenced")
    packages = {name: Package("580.95.05-0ubuntu1", "ii ") for name in names}
    packages["linux-modules-nvidia-580-6.8.0-90-generic"] = Package("6.8.0-90.91", "ii ")
    state = DriverState("ubuntu2404", False, "580.95.05", {}, packages, {}, {})
    held: Any = operations.held
    (line,) = held._inner(look=lambda: state)
    assert line.get_raw_value() == f"apt-mark hold {' '.join(sorted(names))}"
