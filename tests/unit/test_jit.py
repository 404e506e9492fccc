"""Kernels compiled at run time: which are kept, and where."""

import os
import subprocess
from pathlib import Path

import pytest

from gpubox.server import jit


class Box:
    """A driver, a toolkit, and a venv that has compiled something."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jit, "ROOT", str(root))
        self.root, self.driver, self.home = root, root / "driver", root / "cuda-13.1"
        (self.home / "bin").mkdir(parents=True)
        self.has("590.48.01", "13.1.115")

    def has(self, driver: str | None, nvcc: str) -> None:
        self.driver.unlink(missing_ok=True)
        if driver is not None:
            self.driver.write_text(f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release\n")
        (self.home / "bin/nvcc").write_text(f"#!/bin/sh\necho 'release 13.1, V{nvcc}'\n")
        (self.home / "bin/nvcc").chmod(0o755)

    def start(self, venv: str = "one") -> None:
        environment = {**os.environ, "CUDA_HOME": str(self.home)}
        subprocess.run(jit.ready(venv, str(self.driver), str(self.root / "cubins")), check=True, env=environment)

    def compiled(self, venv: str = "one") -> Path:
        kernel = Path(jit.environment(venv)["TRITON_CACHE_DIR"]) / "kernel.so"
        kernel.parent.mkdir(parents=True, exist_ok=True)
        kernel.write_text("")
        return kernel


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    return Box(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("driver", "nvcc", "kept"),
    [
        ("590.48.01", "13.1.115", True),
        ("595.45.04", "13.1.115", False),
        ("590.48.01", "13.1.200", False),
        (None, "13.1.115", False),
    ],
)
@pytest.mark.pain("P30")
def test_kept_only_for_the_same_driver_and_toolkit(box: Box, driver: str | None, nvcc: str, kept: bool) -> None:
    box.start()
    kernel = box.compiled()
    box.has(driver, nvcc)
    box.start()
    assert kernel.exists() is kept
    kernel = box.compiled()
    box.start()
    assert kernel.exists()


@pytest.mark.pain("P30")
def test_another_venv_has_others_and_going_back_finds_its_own(box: Box) -> None:
    box.start("one")
    kernel = box.compiled("one")
    box.start("two")
    assert not (Path(jit.folder("two")) / "triton").exists()
    box.start("one")
    assert kernel.exists()


@pytest.mark.pain("P30")
def test_only_root_writes_there(box: Box) -> None:
    box.start()
    assert Path(jit.folder("one")).stat().st_mode & 0o777 == 0o700


def test_what_flashinfer_downloaded_stays(box: Box) -> None:
    box.start()
    base = Path(jit.environment("one")["FLASHINFER_WORKSPACE_BASE"])
    downloaded = base / ".cache/flashinfer/cubins/a.cubin"
    downloaded.write_text("")
    box.has("595.45.04", "13.1.115")
    box.start()
    assert downloaded.exists()


def test_a_start_that_was_killed_while_it_emptied_goes_on(box: Box) -> None:
    box.start()
    kernel = box.compiled()
    (Path(jit.folder("one")) / "made-with").unlink()
    box.start()
    assert not kernel.exists()


def test_a_box_without_cards_and_toolkit_starts(box: Box) -> None:
    box.has(None, "")
    (box.home / "bin/nvcc").unlink()
    box.start()
    assert Path(jit.folder("one")).is_dir()
