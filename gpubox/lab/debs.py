"""Debian packages out of files at hand: a description, a staging folder, `dpkg-deb`."""

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from gpubox.lab import shell


@dataclass(frozen=True)
class Deb:
    """One package; `trees`, `texts` and `links` map absolute targets to files here, to content, to where they point."""

    name: str
    version: str
    summary: str
    depends: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    architecture: str = "amd64"
    trees: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    executables: frozenset[str] = frozenset()  # those of `texts` that can be run
    links: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)  # postinst, prerm, ...

    def control(self) -> str:
        """The control file; the description says that this is a stand-in."""
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": "gpubox practice machine <root@localhost>",
            "Section": "devel",
            "Priority": "optional",
            "Depends": ", ".join(self.depends),
            "Replaces": ", ".join(self.replaces),
            "Description": f"{self.summary}\n STAND-IN of the gpubox practice machine for NVIDIA's package.",
        }
        return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def build(deb: Deb, folder: Path, say: shell.OnLine) -> None:
    """Write NAME_VERSION_ARCH.deb into `folder`; files are linked, not copied, while it is put together."""
    with tempfile.TemporaryDirectory(prefix="tmp-deb-", dir=folder) as staging:
        root = Path(staging)
        root.chmod(0o755)
        for target, source in deb.trees.items():
            _link_tree(source, _inside(root, target))
        for target, text in deb.texts.items():
            _inside(root, target).write_text(text)
            _inside(root, target).chmod(0o755 if target in deb.executables else 0o644)
        for target, points_to in deb.links.items():
            _inside(root, target).symlink_to(points_to)
        for name, text in {"control": deb.control(), **deb.scripts}.items():
            place = _inside(root, f"/DEBIAN/{name}")
            place.write_text(text)
            place.chmod(0o644 if name == "control" else 0o755)
        # quick rather than small: the packages travel over a bridge of this machine
        shell.stream(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", staging, str(folder)], say)


def _inside(root: Path, target: str) -> Path:
    place = root / target.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _link_tree(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=os.link, dirs_exist_ok=True)
    else:
        os.link(source, target)
