"""Source builds: what is there in, jobs, keys and commands out."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FileUploadCommand
from pyinfra.api.command import FileDownloadCommand, FunctionCommand

from gpubox.cuda import source_build
from gpubox.facts.build import BuildFact, BuildState
from gpubox.facts.venv import Venv
from gpubox.operations import build as operations
from gpubox.settings.stack import SourceBuild
from tests.unit.test_facts import printed

GIB = 1 << 30
BUILD = SourceBuild(package="flash-attn", version="2.8.3", sha256="0" * 64, cuda="12.8", environment={"X": "a b"})
STATE = BuildState(16, 64 * GIB, "12.8, V12.8.93", "12.8", "g++ 12", "cpython-311", "glibc 2.36", {})
VENV = Venv("whole", "3.11.2", "CPython", {"torch": "2.9.1"})


@pytest.mark.parametrize(
    ("usable", "gib", "jobs"), [(16, 64, 16), (16, 20, 5), (2, 64, 2), (16, 3, 1), (192, 1500, 192), (1, 0, 1)]
)
@pytest.mark.pain("P29")
def test_max_jobs(usable: int, gib: int, jobs: int) -> None:
    assert source_build.max_jobs(usable, gib * GIB) == jobs


def test_the_fact() -> None:
    state = BuildFact().process(
        printed(
            cores="8\n8",
            cpuset="0-7",
            quota="",
            limit=str(20 * GIB),
            used=str(4 * GIB),
            stat=f"anon {3 * GIB}\nfile {900 * GIB}\nshmem {1 * GIB}",
            available=str(100 * GIB >> 10),
            nvcc="Cuda compilation tools, release 13.1, V13.1.115",
            torch="__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None",
            compiler="g++ 12",
            python="cpython-311 3.11.2 linux-x86_64",
            libc="ldd 2.36",
            wheels="/var/lib/gpubox/wheels/abc/x-1-py3-none-any.whl",
        )
    )
    assert (state.cores, state.memory_bytes, state.nvcc, state.torch_cuda) == (8, 16 * GIB, "13.1, V13.1.115", "13.0")
    assert state.wheels == {"abc": ["x-1-py3-none-any.whl"]}


@pytest.mark.parametrize(
    ("torch", "nvcc", "differs"), [("12.8", "13.1", True), ("13.0", "13.1", False), (None, "13.1", False)]
)
@pytest.mark.pain("P28")
def test_torchs_cuda(torch: str | None, nvcc: str, differs: bool) -> None:
    assert source_build.cuda_differs(torch, nvcc) is differs


@pytest.mark.parametrize(
    ("state", "venv", "build"),
    [
        (replace(STATE, nvcc="12.8, V12.8.61"), VENV, BUILD),
        (replace(STATE, compiler="g++ 13"), VENV, BUILD),
        (replace(STATE, python="cpython-312"), VENV, BUILD),
        (STATE, replace(VENV, packages={"torch": "2.9.0"}), BUILD),
        (STATE, VENV, BUILD.model_copy(update={"environment": {}})),
        (STATE, VENV, BUILD.model_copy(update={"sha256": "1" * 64})),
    ],
)
def test_another_key_for_whatever_goes_in(state: BuildState, venv: Venv, build: SourceBuild) -> None:
    one = source_build.key(operations.inputs(BUILD, STATE, VENV))
    assert source_build.key(operations.inputs(build, state, venv)) != one
    more_memory = replace(STATE, cores=2, memory_bytes=1)
    there = replace(VENV, packages={**VENV.packages, BUILD.package: "2.8.2"})
    assert source_build.key(operations.inputs(BUILD, more_memory, there)) == one


class FakeHost:
    print_prefix = "[box] "

    def __init__(self, state: BuildState) -> None:
        self.state = state

    def get_fact(self, *_: object, **__: object) -> BuildState:
        return self.state


def commands(monkeypatch: pytest.MonkeyPatch, state: BuildState, found: Venv = VENV) -> list[str]:
    monkeypatch.setattr(operations, "host", FakeHost(state))
    given = operations.source_built._inner("/env", BUILD, "/stack/source-builds.lock", lambda: found)
    return list(texts(given))


def texts(given: Iterator[Any]) -> Iterator[str]:
    for command in given:
        raw = command.args[0] if isinstance(command, FunctionCommand) else command
        if isinstance(raw, FileUploadCommand):
            yield f"up {raw.dest}"
        elif isinstance(raw, FileDownloadCommand):
            yield f"down {raw.src}"
        else:
            yield raw.get_raw_value() if hasattr(raw, "get_raw_value") else str(raw)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOX_CACHE", str(tmp_path))


@pytest.mark.pain("P28", "P29")
def test_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    there = replace(VENV, packages={"flash-attn": "2.8.3"})
    assert commands(monkeypatch, STATE, there) == []
    compile_it, sums, _, install, note = commands(monkeypatch, STATE)
    assert (
        "env CUDA_HOME=/usr/local/cuda-12.8 MAX_JOBS=16 'X=a b' PATH=/usr/local/cuda-12.8/bin:/env/bin:" in compile_it
    )
    assert "--require-hashes --no-build-isolation" in compile_it
    assert "--find-links /stack" in compile_it
    assert sums.startswith("down /var/lib/gpubox/wheels/")
    assert "--no-index" in install
    assert note.endswith("/env installed flash-attn")


def test_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    key = source_build.key(operations.inputs(BUILD, STATE, VENV))
    here = commands(monkeypatch, replace(STATE, wheels={key: ["a.whl"]}))
    assert len(here) == 2
    kept = source_build.kept(key)
    kept.mkdir(parents=True)
    for name in ("a.whl", "SHA256SUMS"):
        (kept / name).write_text("x")
    sent = commands(monkeypatch, STATE)
    assert [each for each in sent if each.startswith("up ")] == [
        f"up /var/lib/gpubox/wheels/.{key}.new/{name}" for name in ("SHA256SUMS", "a.whl")
    ]
    assert not any("pip --disable" in each and "wheel" in each for each in sent)
    assert any("sha256sum --check" in each for each in sent)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (replace(STATE, nvcc=""), "nvcc says nothing"),
        (replace(STATE, nvcc="13.1, V13"), "nvcc says 13.1"),
        (replace(STATE, torch_cuda="13.0"), "torch was built with CUDA 13.0"),
        (replace(STATE, compiler=""), "no g++"),
    ],
)
@pytest.mark.pain("P28")
def test_refused_before_the_build(monkeypatch: pytest.MonkeyPatch, state: BuildState, says: str) -> None:
    (command,) = commands(monkeypatch, state)
    assert says in command
