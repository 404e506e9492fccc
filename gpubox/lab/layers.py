"""Cached layers of a root file system: made once beside, then renamed, so that an interrupted one is never used."""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from gpubox.lab import paths, shell


@dataclass(frozen=True)
class Stack:
    """What a container stands on: layers, topmost first; without overlayfs each holds those below, and is copied."""

    layers: tuple[Path, ...]
    overlay: bool

    def with_top(self, layer: Path) -> "Stack":
        """The stack with one more layer."""
        return Stack((layer, *self.layers), self.overlay)


@dataclass(frozen=True)
class Recipe:
    """How a layer is made: files put in place, then a script run inside (chroot), over the layers below."""

    name: str
    script: str
    files: dict[str, str] = field(default_factory=dict)

    def digest(self, below: Stack) -> str:
        """Twelve characters that change with the recipe, the bottom layer, and whether what is below is copied in."""
        bottom = (
            [layer.name for layer in below.layers[-1:]]
            if below.overlay
            else ["copied", *(layer.name for layer in below.layers)]
        )
        parts = [self.name, self.script, *(f"{k}\0{v}" for k, v in sorted(self.files.items())), *bottom]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def place(recipe: Recipe, below: Stack) -> Path:
    """Where the layer of this recipe is, or will be."""
    return paths.base() / f"{recipe.name}-{recipe.digest(below)}"


def build(recipe: Recipe, below: Stack, say: shell.OnLine) -> None:
    """Make the layer at `place`: the difference to the layers below, or without overlayfs a whole root file system."""
    work = Path(tempfile.mkdtemp(prefix="tmp-", dir=paths.base()))
    upper = work / "upper"
    upper.mkdir()
    if not below.overlay:
        shell.run("cp", "-a", f"{below.layers[0]}/.", str(upper))
    for path, text in recipe.files.items():
        target = upper / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (work / "script").write_text(recipe.script)
    for folder in ("work", "root"):
        (work / folder).mkdir()
    lower = ":".join(map(str, below.layers)) if below.overlay else ""
    shell.stream(shell.guarded("sh", "-ec", _BUILD, "build", str(work), lower), say)
    (work / "upper").rename(place(recipe, below))
    shutil.rmtree(work)


def overlayfs_works() -> bool:
    """Whether this kernel mounts an overlay in the lab's folder (tried, in a mount namespace of its own)."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=paths.state()) as folder:
        for name in ("lower", "upper", "work", "root"):
            (Path(folder) / name).mkdir()
        mount = 'cd "$1" && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root'
        tried = subprocess.run(
            ["unshare", "--mount", "sh", "-c", mount, "try", folder], capture_output=True, check=False
        )
    return tried.returncode == 0


def remove_leftovers(in_use: set[Path]) -> None:
    """Remove half-made layers and those of older recipes that no container stands on."""
    for folder in paths.base().iterdir():
        if folder not in in_use:
            shutil.rmtree(folder, ignore_errors=True)


# The root is a private overlay (or the copy itself); all mounts vanish with the namespace of `shell.guarded`.
_BUILD = """
cd "$1"
root=$1/upper
if [ -n "$2" ]; then
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
    root=$1/root
fi
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
[ -e "$root/etc/resolv.conf" ] || install -D -m 644 /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\\nexit 101\\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
chroot "$root" sh -ec "$(cat script)"
rm -f "$root/usr/sbin/policy-rc.d"
"""
