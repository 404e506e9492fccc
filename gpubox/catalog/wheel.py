"""The real wheel of an SGLang release: fetched once, read as text, never installed and never imported."""

import hashlib
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from functools import cached_property
from pathlib import Path

from gpubox.support import paths
from gpubox.support.errors import GpuboxError

# From 0.5.11 the wheels hold compiled parts and carry a platform; the Python sources inside are what is read here.
_PLATFORMS = ("manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64")


class Wheel:
    """One wheel file: its sources by module name, its metadata, its digest."""

    def __init__(self, path: Path) -> None:
        if not zipfile.is_zipfile(path):
            raise GpuboxError(f"{path} is not a wheel", "a .whl file of sglang")
        self.path = path
        self._zip = zipfile.ZipFile(path)

    @cached_property
    def members(self) -> frozenset[str]:
        """Names of all files in it."""
        return frozenset(self._zip.namelist())

    @cached_property
    def version(self) -> str:
        """As its metadata says."""
        return str(self._metadata["Version"])

    @cached_property
    def requirements(self) -> list[str]:
        """Lines of Requires-Dist that belong to no extra."""
        lines = self._metadata.get_all("Requires-Dist") or []
        return [str(line) for line in lines if "extra ==" not in str(line)]

    @cached_property
    def sha256(self) -> str:
        """Of the file, as package indexes list it."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def source(self, module: str) -> str | None:
        """Text of a module by its dotted name; None: there is no such module."""
        base = module.replace(".", "/")
        name = next((n for n in (f"{base}.py", f"{base}/__init__.py") if n in self.members), None)
        return None if name is None else self._zip.read(name).decode("utf-8-sig")

    def python_files(self, under: str) -> list[str]:
        """Paths of the Python files below a folder, sorted."""
        return sorted(n for n in self.members if n.startswith(under) and n.endswith(".py"))

    def text(self, member: str) -> str:
        """One file as text."""
        return self._zip.read(member).decode("utf-8-sig")

    @cached_property
    def _metadata(self) -> Message:
        name = next((n for n in self.members if n.endswith(".dist-info/METADATA")), None)
        if name is None:
            raise GpuboxError(f"{self.path} holds no METADATA", "a .whl file of sglang")
        return message_from_string(self.text(name))


def fetch(version: str) -> Wheel:
    """The wheel of `sglang==version` from the index that pip is set up for, kept in the cache. Error: none there."""
    folder = paths.cache() / "catalog"  # not with wheels for other Pythons, which others keep
    kept = sorted(folder.glob(f"sglang-{version}-*.whl"))
    if kept:
        return Wheel(kept[0])
    folder.mkdir(parents=True, exist_ok=True)
    platforms = [part for name in _PLATFORMS for part in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", *platforms]
    target = ["--python-version", "3.12", "--dest", str(folder), f"sglang=={version}"]
    done = subprocess.run([*command, *target], capture_output=True, text=True)
    kept = sorted(folder.glob(f"sglang-{version}-*.whl"))
    if done.returncode != 0 or not kept:
        raise GpuboxError(f"pip found no wheel of sglang=={version}: {done.stderr.strip()[-400:]}", "a release on PyPI")
    return Wheel(kept[0])
