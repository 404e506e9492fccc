"""Local packages become the same bytes wherever they are built."""

import os
import shutil
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from gpubox.settings import wheels
from gpubox.support import paths
from gpubox.support.errors import GpuboxError

PACKAGE = paths.root() / "gpubox" / "lab" / "torch_cpu_platform"


def test_same_bytes_from_another_checkout(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(PACKAGE, copy)
    for number, file in enumerate(sorted(copy.rglob("*.py"))):
        os.utime(file, (number, 1_000_000_000 + number))
        file.chmod(0o600)
    assert wheels.build(copy) == wheels.build(PACKAGE)


def test_nothing_is_compressed_and_the_entry_point_is_there() -> None:
    name, content = wheels.build(PACKAGE)
    with zipfile.ZipFile(BytesIO(content)) as wheel:
        assert {entry.compress_type for entry in wheel.infolist()} == {zipfile.ZIP_STORED}
        entry_points = wheel.read(f"{'-'.join(name.split('-')[:2])}.dist-info/entry_points.txt").decode()
    assert entry_points == "[sglang.srt.platforms]\ntorch_cpu=gpubox_torch_cpu_platform:activate\n\n"


def test_a_package_that_does_not_build(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(GpuboxError, match="does not build"):
        wheels.build(tmp_path)
