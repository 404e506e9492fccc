"""Have a model of the Hugging Face hub on the box, before anything that runs is stopped."""

from collections.abc import Callable
from typing import Any

from pyinfra import host

from gpubox.facts.weights import command
from gpubox.operations import Commands, operation
from gpubox.operations.progress import shown
from gpubox.remote.weights_cache import Arguments


@operation()
def fetched(venv: str, arguments: Arguments, look: Callable[[], dict[str, Any]]) -> Commands:
    """
    Fetch what is missing of the pinned revision, with progress; what is half there is continued.

    + venv: path of a venv with huggingface_hub
    + arguments: what, and where to (gpubox.remote.weights_cache.Arguments)
    + look: gives the event of the fact `Weights`
    """
    event = look()
    if event["event"] == "complete":
        host.noop(f"{arguments.repository} is whole at {event['path']}")
        return
    yield shown(command(["fetch", "text"], venv, arguments), f"fetching {arguments.repository} at {arguments.revision}")
