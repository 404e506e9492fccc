"""Step `model`: the weights in place, before the server is told to load them."""

import re
from functools import partial

from gpubox.deploy import step
from gpubox.facts.files import Files
from gpubox.facts.model import Model
from gpubox.facts.once import read
from gpubox.facts.weights import Weights
from gpubox.hosts import Box
from gpubox.operations.files import owned_files
from gpubox.operations.model import made, present
from gpubox.operations.weights import fetched
from gpubox.remote.weights_cache import Arguments
from gpubox.server.release import venv_path
from gpubox.server.service import TOKEN_PATH, recipe_of, venv_of, weights_of
from gpubox.support import secret_files
from gpubox.support.errors import GpuboxError
from gpubox.support.owned_file import OwnedFile


@step("Model")
def model(box: Box) -> None:
    """Fetch the model from the hub, make it, or check that it is there."""
    path, made_by, venv = box.profile.model_path, box.profile.model.make, venv_path(venv_of(box))
    if made_by is not None and not path.startswith("/"):
        raise GpuboxError(
            f"profile {box.profile.name} makes its model ({made_by}) at {path!r}", "an absolute model-path"
        )
    if (wanted := weights_of(box)) is not None:
        _from_the_hub(box, wanted, venv)
        return
    look = partial(read, Model, path=path)
    if (recipe := recipe_of(box)) is None:
        present(name=f"Files of {path}", path=path, look=look)
        return
    name = f"{made_by}, a stand-in for a real model"
    made(name=name, path=path, recipe=recipe, python=f"{venv}/bin/python", look=look)


def _from_the_hub(box: Box, wanted: Arguments, venv: str) -> None:
    """A commit is required: the server runs with the hub offline, and a branch would be another model tomorrow."""
    if not re.fullmatch("[0-9a-f]{40}", wanted.revision):
        raise GpuboxError(
            f"profile {box.profile.name} serves {wanted.repository} of the hub at revision {wanted.revision!r}",
            "model.revision: a commit, 40 hexadecimal digits",
            "take it from the model's page, Files, History",
        )
    if box.settings.hub.token_file is not None:
        token = secret_files.read(box.settings.hub.token_file, f"{box.name}: hub.token_file")
        files = [OwnedFile(TOKEN_PATH, token + "\n", mode="600")]
        owned_files(name="Token of the hub", files=files, look=partial(read, Files, paths=[TOKEN_PATH]))
    look = partial(read, Weights, venv=venv, arguments=wanted)
    fetched(name=f"{wanted.repository} from the hub", venv=venv, arguments=wanted, look=look)
