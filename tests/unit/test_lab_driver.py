"""Practice machine: the stand-ins for NVIDIA's driver."""

import ctypes
import struct
import subprocess
from pathlib import Path

import pytest

from gpubox.lab import driver_debs, driver_run, hardware, paths
from gpubox.lab.elf import library


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOX_LAB_DIR", str(tmp_path))


def test_opening_the_library_fails_as_if_it_were_not_there(tmp_path: Path) -> None:
    path = tmp_path / "libcuda.so.590.48.01"
    path.write_bytes(library("libcuda.so.1"))
    with pytest.raises(OSError, match="libgpubox-lab-has-no-driver"):
        ctypes.CDLL(str(path))


def test_the_library_asks_for_no_executable_stack(tmp_path: Path) -> None:
    """Debian 13's loader refuses one that says nothing of it, in other words than those of a missing library."""
    data = library("libcuda.so.1")
    headers = [struct.unpack_from("<II", data, 64 + 56 * number) for number in range(data[56])]
    assert (0x6474E551, 6) in headers


def test_apts_own_choice_is_the_wrong_one() -> None:
    described = {hardware.load(name).driver.version for name in hardware.names()}
    assert max(driver_debs.versions()) not in described
    assert hardware.load("rtx-pro-6000-x8").driver.version in driver_debs.versions()
    assert hardware.load("tesla-t4-x1").driver.version not in driver_debs.versions()


def test_a_set_needs_its_own_version() -> None:
    for deb in driver_debs.all_debs():
        assert all(needed.endswith(f"(= {deb.version})") for needed in deb.depends), deb.name


def test_the_installer_refuses_to_build_modules(tmp_path: Path) -> None:
    script = tmp_path / "a.run"
    script.write_text(driver_run.text("590.48.01"))
    done = subprocess.run(["sh", str(script), "--silent"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "STAND-IN" in done.stderr


def test_one_box_may_have_hardware_of_its_own() -> None:
    hardware.install("rtx-pro-6000-x8")
    assert hardware.install_for("gpu03", "tesla-t4-x1", "535.309.01")
    assert "535.309.01" in (paths.hardware_of("gpu03") / "proc-driver/nvidia/version").read_text()
    assert "590.48.01" in (paths.hardware() / "proc-driver/nvidia/version").read_text()
    assert not hardware.install_for("gpu03", "tesla-t4-x1", "535.309.01")
