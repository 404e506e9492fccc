"""Build packages of this repository into wheels, the same bytes everywhere, so that a lock can hold their hash."""

import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path

from gpubox.support.errors import GpuboxError

_DAY_ONE = (1980, 1, 1, 0, 0, 0)


@cache
def build(folder: Path) -> tuple[str, bytes]:
    """File name and content of the wheel of the pure Python package in `folder` (its pyproject.toml names flit_core).

    Errors: flit_core refuses the package, with its words.
    """
    with tempfile.TemporaryDirectory(prefix="gpubox-wheel-") as out:
        command = [sys.executable, "-m", "flit_core.wheel", str(folder), "--outdir", out]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
        )
        if done.returncode != 0:
            raise GpuboxError(f"{folder} does not build: {done.stderr.strip()}", "a package that flit_core can build")
        wheel = next(Path(out).glob("*.whl"))
        return wheel.name, _plain(wheel.read_bytes())


def _plain(wheel: bytes) -> bytes:
    """The same files uncompressed, in the order of their names: what deflate gives differs from zlib to zlib."""
    result = BytesIO()
    with zipfile.ZipFile(BytesIO(wheel)) as source, zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(source.namelist()):
            entry = zipfile.ZipInfo(name, _DAY_ONE)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3  # Unix, also when built elsewhere
            target.writestr(entry, source.read(name))
    return result.getvalue()
