"""The signed apt repository of stand-in packages: made once beside, renamed into place, served by pve01."""

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from gpubox.lab import cuda_debs, debs, driver_debs, elf, nvidia_smi, paths, shell

_ARCHIVE = Path("cuda/debian12/x86_64")
_RELEASE = {"Origin": "NVIDIA", "Label": "NVIDIA CUDA", "Architectures": "amd64", "Suite": "", "Codename": ""}


def ensure(say: shell.OnLine) -> bool:
    """Make the repository unless the one that is there came from the same recipe; whether it was made."""
    mark = paths.apt() / "recipe"
    if mark.is_file() and mark.read_text() == _recipe():
        return False
    key = _public_key()
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=paths.state()) as work:
        archive = Path(work) / _ARCHIVE
        archive.mkdir(parents=True)
        for deb in [*cuda_debs.all_debs(key, _wheels(say)), *driver_debs.all_debs()]:
            say(deb.name)
            debs.build(deb, archive, say)
        _index(archive)
        mark.unlink(missing_ok=True)
        shutil.rmtree(paths.apt() / "cuda", ignore_errors=True)
        (Path(work) / "cuda").rename(paths.apt() / "cuda")
    mark.write_text(_recipe())
    return True


def _recipe() -> str:
    """A digest of the code and data that the packages come from, and of the signing key."""
    modules = (cuda_debs, debs, driver_debs, elf, nvidia_smi)
    sources = [Path(__file__), *(Path(str(module.__file__)) for module in modules), *cuda_debs.wheel_locks().values()]
    sources += [paths.files() / "nvcc-12.8", *_key_home().glob("pubring.kbx")]
    versions = " ".join(driver_debs.versions()).encode()
    return hashlib.sha256(b"".join([versions, *(path.read_bytes() for path in sources)])).hexdigest()


def _wheels(say: shell.OnLine) -> dict[str, Path]:
    """The unpacked wheels of each release, downloaded once: uv checks the locked hashes."""
    found = {}
    for version, lock in cuda_debs.wheel_locks().items():
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
        found[version] = place = paths.cache() / "cuda" / f"{version}-{digest}"
        if not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            work = tempfile.mkdtemp(prefix="tmp-", dir=place.parent)
            uv = str(Path(sys.executable).parent / "uv")
            options = ("--no-deps", "--require-hashes", "--link-mode", "copy", "--target", work, "-r", str(lock))
            shell.stream([uv, "pip", "install", *options], say)
            Path(work).rename(place)
    return found


def _public_key() -> bytes:
    """The lab's own signing key (made at the first call), as apt reads it."""
    home = _key_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not list(home.glob("private-keys-v1.d/*.key")):
        user = "gpubox practice machine (STAND-IN for NVIDIA's archive key)"
        _gpg("--passphrase", "", "--quick-generate-key", user, "rsa3072", "sign", "never")
    exported = home / "exported.gpg"
    _gpg("--yes", "--output", str(exported), "--export")
    return exported.read_bytes()


def _index(archive: Path) -> None:
    packages = shell.run("apt-ftparchive", "packages", ".", cwd=archive)
    (archive / "Packages").write_text(packages)
    shell.run("gzip", "--keep", "Packages", cwd=archive)
    options = [f"-oAPT::FTPArchive::Release::{name}={value}" for name, value in _RELEASE.items() if value]
    (archive / "Release").write_text(shell.run("apt-ftparchive", *options, "release", ".", cwd=archive))
    for how, target in (("--clear-sign", "InRelease"), ("--detach-sign", "Release.gpg")):
        _gpg("--yes", "--armor", "--output", str(archive / target), how, str(archive / "Release"))


def _gpg(*arguments: str) -> None:
    """Run gpg in the lab's own home, and end the agent that it starts: nothing of the lab stays running outside."""
    home = str(_key_home())
    try:
        shell.run("gpg", "--homedir", home, "--batch", "--quiet", *arguments)
    finally:
        shell.run("gpgconf", "--homedir", home, "--kill", "all")


def _key_home() -> Path:
    return paths.state() / "apt-key"
