"""The model server of a box as files: unit, environment, and what they must make of the process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubox.facts.ready import PROBE_PATH
from gpubox.facts.service import STAMP
from gpubox.inventory import Box
from gpubox.operations.files import OwnedFile
from gpubox.server import command, probe, systemd
from gpubox.templates import render

UNIT = "sglang.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
ENVIRONMENT_PATH = "/etc/gpubox/sglang.env"


@dataclass(frozen=True)
class Service:
    """Everything about the service of one box that follows from its data."""

    argv: list[str]
    environment: dict[str, str]
    release: str
    files: list[OwnedFile]


def service_of(box: Box) -> Service:
    """The service that the box's profile, stack and settings ask for."""
    argv = command.argv(box.profile, box.settings.venv_path)
    variables = command.environment(box.profile, box.stack, box.settings.venv_path)
    locks = [(box.stack.folder / lock.file).read_bytes() for lock in box.stack.locks]
    release = command.release(argv, variables, locks)
    variables[STAMP] = release
    unit = render(
        "sglang.service.j2",
        profile=box.profile,
        exec_line=systemd.exec_line(argv),
        environment_path=ENVIRONMENT_PATH,
    )
    files = [
        OwnedFile(UNIT_PATH, unit),
        OwnedFile(ENVIRONMENT_PATH, render("sglang.env.j2", text=systemd.environment_file(variables)), mode="600"),
        OwnedFile(PROBE_PATH, Path(probe.__file__).read_bytes(), mode="755"),
    ]
    return Service(argv, variables, release, files)


def probe_arguments(box: Box) -> dict[str, Any]:
    """What the probe (gpubox.server.probe) asks the box's own server."""
    known = box.profile.known_answer
    arguments: dict[str, Any] = {
        "url": f"http://127.0.0.1:{box.profile.port}",
        "model": str(box.profile.flags.get("served-model-name", box.profile.model_path)),
        "unit": UNIT,
        "timeout_s": box.profile.start_timeout_s,
    }
    return arguments if known is None else {**arguments, "prompt": known.prompt, "answer": known.answer}
