"""Profiles and stacks that only a test has: a checkout with more in it, and an inventory that names one of them."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpubox.settings.stack import Stack
from gpubox.support import paths
from tests.deploy import Run, converge

INVENTORY = """
import runpy
from gpubox.inventory import checked

_known = runpy.run_path({known!r}, run_name="gpubox_inventory")
hypervisors = _known["hypervisors"]
gpu_boxes = [(name, {{**data, **{changes!r}}}) for name, data in _known["gpu_boxes"] if name == {box!r}]
checked(globals())
"""


@dataclass(frozen=True)
class Workshop:
    """A checkout beside the real one, made of links to it."""

    root: Path
    known: Path
    """The inventory whose box is used."""
    box: str

    def prepare(self) -> "Workshop":
        """Make the links; profiles and stacks are folders of links, so that more can lie there."""
        self.root.mkdir()
        for entry in paths.root().iterdir():
            if entry.name in {"profiles", "stacks"}:
                (self.root / entry.name).mkdir(parents=True)
                for each in entry.iterdir():
                    (self.root / entry.name / each.name).symlink_to(each)
            elif entry.name not in {".git", ".venv", "group_data", "inventory"}:
                (self.root / entry.name).symlink_to(entry)
        (self.root / "group_data").symlink_to(paths.root() / "group_data")
        (self.root / "inventory").mkdir()
        return self

    def profile(self, name: str, **keys: Any) -> str:
        """A profile like tiny-cpu but for `keys`; its name."""
        text = yaml.safe_dump({"summary": f"{name} (test)", "extends": "tiny-cpu", **keys})
        (self.root / "profiles" / f"{name}.yaml").write_text(text)
        return name

    def inventory(self, profile: str, **settings: Any) -> Path:
        """An inventory of the one box with this profile."""
        file = self.root / "inventory" / f"{profile}.py"
        changes = {"profile": profile, **settings}
        file.write_text(INVENTORY.format(known=str(self.known.resolve()), changes=changes, box=self.box))
        return file

    def environment(self) -> dict[str, str]:
        """What a run needs in its environment to find all this."""
        return {**os.environ, "GPUBOX_ROOT": str(self.root)}

    def deploy(self, profile: str, **settings: Any) -> Run:
        """One run of the deploy on the box alone, with this profile."""
        return converge(self.inventory(profile, **settings), "--limit", self.box, environment=self.environment())

    def stack(self, name: str, pins: dict[str, str], extra: dict[str, str] | None = None, **keys: Any) -> str:
        """A stack like the practice machine's with other versions of packages, or with files of its own in a wheel.

        + pins: package -> version; its hashes are asked of the index
        + extra: path below site-packages -> text
        """
        template = paths.stacks() / "sglang-0.5.23-cpu"
        folder = self.root / "stacks" / name
        shutil.copytree(template, folder)
        about = {**yaml.safe_load((template / "stack.yaml").read_text()), **keys}
        lock = folder / "packages.lock"
        lock.write_text(_with_pins(lock.read_text(), pins))
        if extra:
            about["local_packages"] = [*about["local_packages"], str(_package(folder / "extra", extra))]
        (folder / "stack.yaml").write_text(yaml.safe_dump(about))
        if extra:
            (folder / "local.lock").write_text(Stack(name=name, **about).local_lock())
        return name


def _with_pins(lock: str, pins: dict[str, str]) -> str:
    """The lock with other versions of some packages."""
    for name, version in pins.items():
        command = [
            str(Path(sys.executable).parent / "uv"),
            "pip",
            "compile",
            "--quiet",
            "--no-deps",
            "--generate-hashes",
            "-",
        ]
        done = subprocess.run(
            [*command, "--no-header", "--no-annotate"],
            input=f"{name}=={version}",
            capture_output=True,
            text=True,
            check=True,
        )
        lock, changed = re.subn(rf"^{name}==.*?(?=^[a-z])", lambda _: done.stdout, lock, flags=re.M | re.S)  # noqa: B023
        assert changed == 1, name
    return lock


def _package(folder: Path, files: dict[str, str]) -> Path:
    """A package of one module, for flit."""
    ((path, text),) = files.items()
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text(text)
    module = path.removesuffix(".py").replace("/", ".")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n'
        '[project]\nname = "gpubox-test-extra"\nversion = "0.1"\ndescription = "A test\'s"\n'
        f'[tool.flit.module]\nname = "{module}"\n'
    )
    return folder
