"""A venv with one package that is compiled on the box: what the tests of source builds run."""

import os
from functools import partial
from hashlib import sha256
from pathlib import Path

from gpubox.deploy import here
from gpubox.facts.once import read
from gpubox.facts.venv import PythonEnv, Venv
from gpubox.hosts import Box
from gpubox.operations.build import source_built
from gpubox.operations.files import owned_files
from gpubox.operations.venv import environment, installer
from gpubox.settings import lockfile
from gpubox.settings.stack import SourceBuild
from gpubox.support import paths
from gpubox.support.owned_file import OwnedFile

FOLDER, VENV = "/var/lib/gpubox/stacks/probe", "/opt/probe"

this = here()
archive = Path(os.environ["SM120_ARCHIVE"]).read_bytes()
digest = sha256(archive).hexdigest()
build = SourceBuild(
    package="sm120-probe", version="1.0", sha256=digest, cuda="13.1", environment={"SM120_PROBE": "as the stack says"}
)
uv = paths.root() / "requirements-uv.txt"
files = [
    OwnedFile(f"{FOLDER}/uv.txt", uv.read_bytes()),
    OwnedFile(f"{FOLDER}/sm120_probe-1.0.tar.gz", archive),
    OwnedFile(f"{FOLDER}/source-builds.lock", f"sm120-probe==1.0 --hash=sha256:{digest}\n"),
]
look = partial(read, PythonEnv, path=VENV, beside=f"{VENV}.new", paths=[file.path for file in files])


def venv() -> Venv:
    return look().venv


if isinstance(this, Box):
    owned_files(name="Files", files=files, look=lambda: look().files)
    installer(name="uv", version=lockfile.read(uv)[0].version, requirements=f"{FOLDER}/uv.txt", look=lambda: look().uv)
    environment(name="venv", path=VENV, python="3.11", look=venv)
    source_built(name="probe", path=VENV, build=build, requirements=f"{FOLDER}/source-builds.lock", look=venv)
