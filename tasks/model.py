"""Step `model`: the weights in place, before the server is told to load them."""

from functools import partial

from gpubox import paths
from gpubox.deploy import step
from gpubox.errors import GpuboxError
from gpubox.facts.model import Model
from gpubox.facts.once import read
from gpubox.inventory import Box
from gpubox.operations.changes import Changes
from gpubox.operations.files import OwnedFile
from gpubox.operations.model import made, present

RECIPES = "/var/lib/gpubox/recipes"


@step("Model")
def model(box: Box) -> Changes:
    """Make the model or check that it is there; a name of the hub is left to SGLang. Returns what changed."""
    path, recipe = box.profile.model_path, box.profile.model.make
    local = path.startswith(("/", "./", "../", "~"))
    if recipe is not None and not path.startswith("/"):
        raise GpuboxError(
            f"profile {box.profile.name} makes its model ({recipe}) at {path!r}", "an absolute model-path"
        )
    if not local:
        return Changes()
    look = partial(read, Model, path=path)
    if recipe is None:
        present(name=f"Files of {path}", path=path, look=look)
        return Changes()
    name = recipe.replace("-", "_") + ".py"
    script = (paths.root() / "gpubox" / "lab" / name).read_text()
    python = f"{box.settings.venv_path}/bin/python"
    change = made(
        name=f"{recipe}, a stand-in for a real model",
        path=path,
        recipe=OwnedFile(f"{RECIPES}/{name}", script),
        python=python,
        look=look,
    )
    return Changes((change,))
