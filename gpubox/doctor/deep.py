"""The deep form: every file that gpubox put on a box is read, in one more round trip of seconds to minutes."""

import json
from typing import Any

from gpubox.doctor.check import Check, compared
from gpubox.doctor.look import Looks, asked
from gpubox.facts import files
from gpubox.facts.venv import UV
from gpubox.hosts import Box
from gpubox.server.release import ROOT, venv_path
from gpubox.server.service import recipe_of, venv_of
from gpubox.support import payload
from gpubox.support.errors import CannotTellError

LIMIT_S = 900.0
"""For one box, in seconds: 10 GB of an environment and of toolkits from a cold disk."""
_PACKAGES = r"^(cuda-|libcu|libnv|libnpp|libnccl|nvidia-|gds-tools|nsight-)"
"""Names of the packages of toolkits and driver."""
_INSTALLER = UV.removesuffix("/bin/uv")


def look(box: Box) -> Looks:
    """The answers of the box. Errors: it is not reached, or takes too long."""
    own = [ROOT, _INSTALLER]
    given = {"trees": [venv_path(venv_of(box)), _INSTALLER], "own": own, "packages": _PACKAGES}
    recipe = recipe_of(box)
    questions: dict[str, Any] = {"deep": payload.shell("deep", given=given)}
    if recipe is not None:
        questions["recipe"] = files.question([recipe.path])
    return Looks(asked(box.address, box.connection, questions, LIMIT_S))


def checks(box: Box, looks: Looks, deploy: str) -> list[Check]:
    """One line each: the environment, the installer, toolkits and driver, owners and modes, what makes the model."""
    text = looks.answers["deep"].expect(0, what="the deep look")
    try:
        said = json.loads(text)
        trees, loose, packages = said["trees"], list(said["loose"]), list(said["packages"])
    except (ValueError, LookupError, TypeError) as error:
        raise CannotTellError(f"the deep look gave something else: {error}") from error
    venv = venv_path(venv_of(box))
    again = "apt-get install --reinstall PACKAGE of what is named; the deploy puts back what is missing whole"
    closed = f"chown root, chmod go-w; the deploy closes the folders themselves: {deploy}"
    return [
        compared(box.name, "deep.venv", _tree(trees[venv]), f"every file of {venv} is as it was built", deploy),
        compared(
            box.name, "deep.uv", _tree(trees[_INSTALLER]), "the installer is whole", f"rm -r {_INSTALLER}; {deploy}"
        ),
        compared(box.name, "deep.packages", packages, "toolkits and driver are as their packages brought them", again),
        compared(box.name, "deep.owners", loose, f"all below {ROOT} is root's alone to write", closed),
        *_recipe(box, looks, deploy),
    ]


def _tree(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return ["it is not there"]
    lines = [f"{path}: {how}" for path, how in found["wrong"].items()]
    more = found["count"] - len(lines)
    return [*lines, *([f"and {more} more"] if more > 0 else [])]


def _recipe(box: Box, looks: Looks, deploy: str) -> list[Check]:
    recipe = recipe_of(box)
    if recipe is None:
        return []
    there = files.parse(looks.answers["recipe"].lines)[recipe.path]
    wrong = [] if recipe.is_at(there) else [f"{recipe.path} differs"]
    return [compared(box.name, "deep.recipe", wrong, f"{recipe.path} is ours", deploy)]
