"""Whether a model of the hub lies whole on the box. One command; the hub is not asked."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact
from gpubox.remote.weights_cache import Arguments
from gpubox.support import payload
from gpubox.support.errors import CannotTellError


def command(action: Sequence[str], venv: str, arguments: Arguments) -> StringCommand:
    """The shell command that runs gpubox/remote/weights.py (`look`, or `fetch` and `text`) with the venv's python."""
    given = asdict(arguments)  # the token itself is in a file on the box
    return StringCommand(payload.shell("weights", *action, given=given, python=f"{venv}/bin/python"))


class Weights(Fact[dict[str, Any]]):
    """The final event of a look: `complete` (path, revision, bytes) or `incomplete` (lacks).

    A venv that is not there gives `incomplete`. Errors: CannotTellError when its python does not run.
    """

    @override
    def command(self, venv: str, arguments: Arguments) -> StringCommand:
        absent = QuoteString(json.dumps({"event": "incomplete", "lacks": ["(there is no venv to look with)"]}))
        python = QuoteString(f"{venv}/bin/python")
        look = command(["look"], venv, arguments)
        return StringCommand("if test -x", python, "; then {", look, "|| test $? = 1; }; else echo", absent, "; fi")

    @override
    def process(self, output: list[str]) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(output[-1])
        if event["event"] not in {"complete", "incomplete"}:
            raise CannotTellError(
                f"the weights cannot be looked at: {event.get('cause')}", "", str(event.get("todo", ""))
            )
        return event
