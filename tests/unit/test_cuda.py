"""CUDA: names, sources, the fact's text in, operations' commands out."""

import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from pyinfra.api import StringCommand
from pyinfra.api.command import FunctionCommand

from gpubox.catalog import matrix
from gpubox.cuda import packages as cuda
from gpubox.facts.cuda import Alternatives, CudaFact, CudaState
from gpubox.facts.packages import Package
from gpubox.operations import cuda as operations
from gpubox.settings.host import AptSource, Cuda
from gpubox.support import paths
from gpubox.support.errors import CannotTellError
from gpubox.support.owned_file import Entry, OwnedFile
from tests.unit.test_facts import printed

CASES = paths.root() / "tests" / "cases" / "apt"
URI = "http://mirror.test/cuda/"
CONVERGED = CudaState(
    distribution="debian12",
    packages={"cuda-keyring": Package("1.1-1", "ii ")},
    files={cuda.KEYRING_FILE: Entry("file", "644", "root", "root"), cuda.SOURCE_FILE: Entry("absent")},
    nvcc={"12.8": "12.8", "13.1": "13.1"},
    alternatives=Alternatives(True, "/usr/local/cuda-13.1", ("/usr/local/cuda-12.8", "/usr/local/cuda-13.1")),
    link="/usr/local/cuda-13.1",
    keyring=(CASES / "valid.gpg").read_bytes(),
)


def texts(commands: Iterator[Any]) -> list[str]:
    raw = [command.args[0] if isinstance(command, FunctionCommand) else command for command in commands]
    return [command.get_raw_value() if isinstance(command, StringCommand) else repr(command) for command in raw]


@pytest.mark.parametrize(
    ("parts", "exact", "wishes"),
    [
        ({}, {}, ["cuda-toolkit-12-8", "cuda-toolkit-13-1"]),
        (
            {"12.8": ["nvcc", "cudart-dev", "libcurand-dev"]},
            {},
            ["cuda-nvcc-12-8", "cuda-cudart-dev-12-8", "libcurand-dev-12-8", "cuda-toolkit-13-1"],
        ),
        (
            {},
            {"cuda-toolkit-13-1": "13.1.1-1", "cuda-nvcc-13-1": "13.1.115-1"},
            ["cuda-toolkit-12-8", "cuda-toolkit-13-1=13.1.1-1", "cuda-nvcc-13-1=13.1.115-1"],
        ),
    ],
)
@pytest.mark.pain("P24")
def test_wishes(parts: dict[str, list[str]], exact: dict[str, str], wishes: list[str]) -> None:
    assert cuda.wishes(["12.8", "13.1"], parts, exact) == wishes


@pytest.mark.parametrize(
    ("distribution", "toolkits", "says"),
    [
        ("debian12", ["12.8", "13.1"], None),
        ("ubuntu24.04", ["12.8", "13.1"], None),
        ("debian13", ["13.1"], None),
        ("debian13", ["13.3"], None),
        ("ubuntu22.04", ["11.8", "14.0"], None),
        ("debian13", ["12.8", "13.1"], "debian12 or ubuntu2204 or ubuntu2404"),
        ("arch", ["12.8"], None),
    ],
)
@pytest.mark.pain("P24")
def test_a_toolkit_that_the_distribution_has_not(distribution: str, toolkits: list[str], says: str | None) -> None:
    error = cuda.not_carried(distribution, toolkits, matrix().first_toolkit)
    assert (error is None) is (says is None)
    if error is not None and says is not None:
        assert says in error.todo
        assert "cuda.source.uri" in error.todo
        assert "12.8" in error.found


def test_every_repository_of_the_table_has_a_known_keyring() -> None:
    assert matrix().first_toolkit.keys() == cuda.KEYRING_SHA256.keys()


ALTERNATIVES = """Name: cuda
Link: /usr/local/cuda
Status: manual
Best: /usr/local/cuda-13.1
Value: /usr/local/cuda-12.8

Alternative: /usr/local/cuda-12.8
Priority: 128

Alternative: /usr/local/cuda-13.1
Priority: 131"""


def cuda_output(alternatives: tuple[str, int], **more: str) -> list[str]:
    empty: dict[str, str | tuple[str, int]] = dict.fromkeys(
        ("packages", "keyring", "verify", "headers", "link", "runtimes", "library_path"), ""
    )
    return printed(
        **{
            **empty,
            "distribution": "debian12",
            "files": "absent\t\t\t/x",
            "own_list": "/etc/apt/sources.list.d/cuda-debian12-x86_64.list",
            "nvcc": "12.8 release 12.8\n13.1 ",
            "alternatives": alternatives,
            **more,
        }
    )


@pytest.mark.pain("P20")
def test_the_fact() -> None:
    state = CudaFact().process(cuda_output((ALTERNATIVES, 0)))
    assert state.alternatives == Alternatives(
        True, "/usr/local/cuda-12.8", ("/usr/local/cuda-12.8", "/usr/local/cuda-13.1")
    )
    assert state.nvcc == {"12.8": "12.8", "13.1": ""}
    assert "/etc/apt/sources.list.d/cuda-debian12-x86_64.list" in state.files


@pytest.mark.pain("P26", "P31")
def test_what_programs_may_trip_over() -> None:
    found = cuda_output(
        ("", 2),
        runtimes="libcudart.so.12\t/a/libcudart.so.12\nlibcudart.so.13\t/b/libcudart.so.13",
        library_path="/etc/environment:LD_LIBRARY_PATH=/usr/local/cuda/lib64",
        headers="13.1 curand_kernel.h",
    )
    state = CudaFact().process(found)
    assert sorted(state.runtimes) == ["libcudart.so.12", "libcudart.so.13"]
    assert state.library_path == ["/etc/environment:LD_LIBRARY_PATH=/usr/local/cuda/lib64"]
    assert state.lacking_headers == {"13.1": ["curand_kernel.h"]}


def test_no_alternatives_is_not_the_same_as_cannot_tell() -> None:
    assert CudaFact().process(cuda_output(("", 2))).alternatives is None
    with pytest.raises(CannotTellError, match="alternatives: exit code 127"):
        CudaFact().process(cuda_output(("", 127)))


@pytest.mark.parametrize(
    ("state", "commands"),
    [
        (CONVERGED, 0),
        (replace(CONVERGED, link=""), 2),
        (replace(CONVERGED, alternatives=None), 2),
        (replace(CONVERGED, alternatives=Alternatives(False, "/usr/local/cuda-13.1", ())), 2),
        (replace(CONVERGED, alternatives=Alternatives(True, "/usr/local/cuda-12.8", ())), 2),
    ],
)
@pytest.mark.pain("P20")
def test_default_toolkit(state: CudaState, commands: int) -> None:
    assert len(texts(operations.default_toolkit._inner(version="13.1", look=lambda: state))) == commands


def test_a_compiler_that_is_gone_is_put_back() -> None:
    broken = replace(CONVERGED, nvcc={"12.8": "", "13.1": "13.1"})
    commands = texts(operations.compilers._inner(toolkits=["12.8", "13.1"], look=lambda: broken))
    assert len(commands) == 1
    assert "--reinstall" in commands[0]
    assert "cuda-nvcc-12-8" in commands[0]
    assert texts(operations.compilers._inner(toolkits=["12.8", "13.1"], look=lambda: CONVERGED)) == []


@pytest.mark.pain("P31")
def test_headers_that_lack_are_added() -> None:
    assert texts(operations.headers._inner(service="13.1", look=lambda: CONVERGED)) == []
    lacking = replace(CONVERGED, lacking_headers={"12.8": ["cuda_runtime.h"], "13.1": ["curand_kernel.h"]})
    _, command = texts(operations.headers._inner(service="13.1", look=lambda: lacking))
    assert command.endswith("install --no-install-recommends libcurand-dev-13-1")


def keyring(state: CudaState, wish: Cuda, commands: int) -> list[str]:
    """The first commands of the operation: after the last one it asks the host again."""
    found = operations.keyring._inner(wish=wish, look=lambda: state)
    return texts(next(found) for _ in range(commands))


@pytest.mark.pain("P22")
def test_a_downloaded_key_is_compared_with_the_known_digest() -> None:
    _, download, check, install = keyring(replace(CONVERGED, packages={}), Cuda(), 4)
    assert f"{cuda.NVIDIA.format(distribution='debian12')}{cuda.KEYRING_DEB}" in download
    assert cuda.KEYRING_SHA256["debian12"] in check
    assert "dpkg --force-confold --force-confmiss -i" in install


@pytest.mark.parametrize(
    ("state", "wish", "installs"),
    [
        (CONVERGED, Cuda(), False),
        (replace(CONVERGED, keyring_changed=True), Cuda(), True),
        (replace(CONVERGED, keyring=(CASES / "expired.gpg").read_bytes()), Cuda(), True),
        (replace(CONVERGED, keyring=(CASES / "sha1.gpg").read_bytes()), Cuda(), False),
        (replace(CONVERGED, keyring=(CASES / "sha1.gpg").read_bytes(), distribution="debian13"), Cuda(), True),
        (CONVERGED, Cuda(source=AptSource(fingerprint="0" * 40)), True),
        (CONVERGED, Cuda(source=AptSource(fingerprint="360776D13E9595EFC08FB400A63E32567A3C1B7A")), False),
    ],
)
@pytest.mark.pain("P22")
def test_a_key_that_cannot_vouch_is_replaced(state: CudaState, wish: Cuda, installs: bool) -> None:
    found = operations.keyring._inner(wish=wish, look=lambda: state)
    assert (next(found, None) is not None) is installs


@pytest.mark.pain("P21")
@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("cuda-debian12-x86_64.list", True),
        ("cuda-debian13-x86_64.list", True),
        ("cuda-ubuntu2404-x86_64.list", True),
        ("cuda-our-mirror-x86_64.list", False),
        ("gpubox-cuda.sources", False),
    ],
)
def test_lists_that_a_keyring_package_brings(name: str, is_own: bool) -> None:
    assert cuda.is_own_list(f"/etc/apt/sources.list.d/{name}") is is_own


@pytest.mark.pain("P21")
@pytest.mark.parametrize("distribution", ["debian12", "debian13"])  # a mirror's, or from before an upgrade
def test_the_keyrings_own_list_goes_and_ours_stands(distribution: str) -> None:
    own = f"/etc/apt/sources.list.d/cuda-{distribution}-x86_64.list"
    state = replace(CONVERGED, files={**CONVERGED.files, own: Entry("file")})
    commands = texts(operations.source._inner(wish=AptSource(uri=URI), look=lambda: state))
    assert commands[0] == f"rm -f {own}"
    ours = OwnedFile(cuda.SOURCE_FILE, cuda.sources(URI))
    there = replace(CONVERGED, files={cuda.SOURCE_FILE: Entry("file", "644", "root", "root", _digest(ours))})
    assert texts(operations.source._inner(wish=AptSource(uri=URI), look=lambda: there)) == []


def _digest(file: OwnedFile) -> str:
    return sha256(file.data).hexdigest()


@pytest.mark.pain("P20")
def test_no_step_after_this_one_installs_packages() -> None:
    """The default is chosen after the last package operation of a run: each may choose anew."""
    steps = re.findall(r"^    .*?\b(\w+)\(this", (paths.root() / "deploy.py").read_text(), re.M)
    after = steps[steps.index("cuda") + 1 :]
    assert after
    for step in after:
        text = (paths.root() / "tasks" / f"{step}.py").read_text()
        assert "operations.packages" not in text, step
        assert "operations.apt" not in text, step
