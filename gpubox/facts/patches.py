"""The state of source patches in a venv's SGLang."""

import json
import shlex

from typing_extensions import override

from gpubox.facts.answers import Fact
from gpubox.remote.patch import ABSENT, Found
from gpubox.server import patches
from gpubox.support.errors import CannotTellError


class PatchStates(Fact[dict[str, Found]]):
    """State of each patch in `wanted` (names of gpubox.server.patches) in the venv at path `venv`.

    A venv that is not there gives `absent` for all. Errors: CannotTellError when its python does not run.
    """

    @override
    def command(self, venv: str, wanted: list[str]) -> str:
        absent = json.dumps({name: {"state": ABSENT, "why": f"there is no venv at {venv}"} for name in wanted})
        python = shlex.quote(f"{venv}/bin/python")
        look = patches.command("state", venv, wanted).get_raw_value()
        return f"if test -x {python}; then {look} || echo exit code $?; else echo {shlex.quote(absent)}; fi"

    @override
    def process(self, output: list[str]) -> dict[str, Found]:
        try:
            return {name: Found(**found) for name, found in json.loads(output[-1]).items()}
        except (ValueError, TypeError, LookupError) as error:
            raise CannotTellError(
                f"the state of the source patches could not be read: {' '.join(output)[-300:] or error}",
                "one JSON object from the venv's python",
            ) from error
