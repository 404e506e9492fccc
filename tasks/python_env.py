"""Step `python env`: uv, the venv at the configured path, and in it what the stack's locks say."""

from functools import partial
from hashlib import sha256

from gpubox import lockfile, paths
from gpubox.deploy import step
from gpubox.facts.cards import DriverAnswers
from gpubox.facts.once import read
from gpubox.facts.venv import PythonEnv
from gpubox.inventory import Box
from gpubox.operations.cards import driver_answers
from gpubox.operations.changes import Changes
from gpubox.operations.files import OwnedFile, owned_files
from gpubox.operations.venv import Offer, environment, installer, packages, source_built

STACKS = "/var/lib/gpubox/stacks"
"""On a box: a folder for each content of locks and wheels that was ever installed from."""


@step("Python env")
def python_env(box: Box) -> Changes:
    """Bring the venv of the service to the stack that the profile names. Returns what changed of its packages."""
    stack, path = box.stack, box.settings.venv_path
    uv = paths.root() / "requirements-uv.txt"
    payload = {**stack.payload(), "uv.txt": uv.read_bytes()}
    folder = f"{STACKS}/{_digest(payload)}"
    files = [OwnedFile(f"{folder}/{name}", content) for name, content in payload.items()]
    look = partial(read, PythonEnv, path=path, paths=[file.path for file in files])
    kept = frozenset(build.package for build in stack.source_builds)

    if stack.device == "cuda":
        driver_answers(name="The driver answers", stack=stack.name, look=partial(read, DriverAnswers))
    owned_files(name="Locks and wheels", files=files, look=lambda: look().files)
    installer(name="uv", version=lockfile.read(uv)[0].version, requirements=f"{folder}/uv.txt", look=lambda: look().uv)
    environment(name=f"venv {path}", path=path, python=stack.python, look=lambda: look().venv)
    installed = packages(
        name=f"Packages of {stack.name}",
        path=path,
        wanted=stack.pins,
        kept=kept,
        offer=Offer(folder, stack.find_links),
        look=lambda: look().venv,
    )
    compiled = [
        source_built(
            name=f"{build.package} from source",
            path=path,
            build=build,
            requirements=f"{folder}/source-builds.lock",
            look=lambda: look().venv,
        )
        for build in stack.source_builds
    ]
    return Changes((installed, *compiled))


def _digest(payload: dict[str, bytes]) -> str:
    each = sorted(f"{name}:{sha256(content).hexdigest()}" for name, content in payload.items())
    return sha256("\n".join(each).encode()).hexdigest()[:16]
