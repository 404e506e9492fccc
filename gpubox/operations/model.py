"""Have a model's files: made on the spot, or there already."""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

from pyinfra.api import QuoteString, StringCommand

from gpubox.facts.model import MARKER, ModelState
from gpubox.operations import Commands, operation
from gpubox.operations.files import put
from gpubox.operations.progress import shown
from gpubox.support.owned_file import OwnedFile


@operation()
def made(path: str, recipe: OwnedFile, python: str, look: Callable[[], ModelState]) -> Commands:
    """
    Have a model that a recipe makes: beside, then renamed into place. One that gpubox did not make is moved aside.

    + path: the model's folder
    + recipe: a Python script that takes the folder to write into; another script means another model
    + python: path of the interpreter that has what the recipe imports
    + look: gives the present state of the path
    """
    found, digest = look(), sha256(recipe.data).hexdigest()
    if found.exists and found.recipe == digest and not found.damaged and not found.lacks:
        return
    yield from put(recipe)
    beside, marker = QuoteString(f"{path}.gpubox-new"), QuoteString(f"{path}.gpubox-new/{MARKER}")
    make = StringCommand(
        *("rm -rf", beside, "&& mkdir -p", beside, "&&", QuoteString(python), QuoteString(recipe.path), beside),
        *("&& echo", digest, ">", marker, "&& ( cd", beside, "&& sha256sum -- * >>", MARKER, "&& sync -f . )"),
    )
    yield shown(make, f"making the model {path}")
    yield StringCommand(_away(path, found), "&& mv -T", beside, QuoteString(path))


@operation()
def present(path: str, look: Callable[[], ModelState]) -> Commands:
    """
    Check that a model lies on the box; nothing is changed. What is missing fails the host, with what to do.

    + path: the model's folder or file
    + look: gives the present state of the path
    """
    found = look()
    if found.exists and not found.lacks:
        return
    seen = f"{path} lacks {', '.join(found.lacks[:5])}" if found.exists else f"{path} is not on this box"
    todo = "put the model there, or name one of the hub (ORGANISATION/NAME) as model-path in the profile"
    message = f"{seen}\n  needed: the model that the profile serves\n  to do:  {todo}"
    yield StringCommand("printf '%s\\n'", QuoteString(message), ">&2; exit 1")


def _away(path: str, found: ModelState) -> StringCommand:
    if found.exists and not found.recipe:
        aside = f"{path}.old-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        return StringCommand("mv -T", QuoteString(path), QuoteString(aside))
    return StringCommand("rm -rf", QuoteString(path))
