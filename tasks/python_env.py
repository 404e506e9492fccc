"""Step `python env`: uv, and a venv of exactly what the stack's locks say, built beside the one that serves."""

from functools import partial
from hashlib import sha256

from gpubox.deploy import step
from gpubox.facts.cards import DriverAnswers
from gpubox.facts.once import read, read_lasting
from gpubox.facts.patches import PatchStates
from gpubox.facts.venv import PythonEnv, Venv
from gpubox.hosts import Box
from gpubox.operations.build import source_built
from gpubox.operations.cards import driver_answers
from gpubox.operations.files import owned_files
from gpubox.operations.patches import is_wrong, source
from gpubox.operations.venv import Offer, Wish, environment, in_place, installer, packages
from gpubox.server.release import venv_path
from gpubox.server.service import venv_of
from gpubox.settings import lockfile
from gpubox.support import paths
from gpubox.support.owned_file import OwnedFile

STACKS = "/var/lib/gpubox/stacks"
"""On a box: a folder for each content of locks and wheels that was ever installed from."""


@step("Python env")
def python_env(box: Box) -> None:
    """Have the venv that the box's stack asks for. One that is whole is never touched; the server is not concerned."""
    stack, uv = box.stack, paths.root() / "requirements-uv.txt"
    payload = {**stack.payload(), "uv.txt": uv.read_bytes()}
    folder = f"{STACKS}/{_digest(payload)}"
    files = [OwnedFile(f"{folder}/{name}", content) for name, content in payload.items()]
    built = {build.package: build.version for build in stack.source_builds}
    wish = Wish(venv_path(venv_of(box)), stack.python, {**stack.pins, **built})
    look = partial(read_lasting, PythonEnv, path=wish.path, beside=wish.beside, paths=[file.path for file in files])
    patched = partial(read, PatchStates, wanted=stack.patches)

    def is_whole() -> bool:
        if not wish.is_met_by(look().venv):
            return False
        return not stack.patches or not any(is_wrong(found) for found in patched(venv=wish.path).values())

    def building() -> Venv:
        return look().venv if is_whole() else look().beside

    if stack.device == "cuda":
        driver_answers(name="The driver answers", stack=stack.name, look=partial(read, DriverAnswers))
    owned_files(name="Locks and wheels", files=files, look=lambda: look().files)
    installer(name="uv", version=lockfile.read(uv)[0].version, requirements=f"{folder}/uv.txt", look=lambda: look().uv)
    environment(name=f"venv {wish.path}", path=wish.beside, python=stack.python, look=building)
    packages(
        name=f"Packages of {stack.name}",
        path=wish.beside,
        wanted=stack.pins,
        kept=frozenset(built),
        offer=Offer(folder, stack.find_links),
        look=building,
    )
    for build in stack.source_builds:
        source_built(
            name=f"{build.package} from source",
            path=wish.beside,
            build=build,
            requirements=f"{folder}/source-builds.lock",
            look=building,
        )
    if stack.patches:
        source(
            name="Source patches",
            venv=wish.beside,
            wanted=stack.patches,
            look=lambda: patched(venv=wish.path if is_whole() else wish.beside),
        )
    in_place(
        name="venv in place", wish=wish, is_whole=is_whole, present=lambda: look().venv, look=lambda: look().beside
    )


def _digest(payload: dict[str, bytes]) -> str:
    each = sorted(f"{name}:{sha256(content).hexdigest()}" for name, content in payload.items())
    return sha256("\n".join(each).encode()).hexdigest()[:16]
