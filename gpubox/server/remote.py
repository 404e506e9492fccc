"""The releases of a box for the command line: the same scripts on the box as the deploy's, by ssh alone."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

from gpubox.facts import release
from gpubox.facts.release import Releases
from gpubox.hosts import Box
from gpubox.remote import secrets, switch
from gpubox.server import readiness
from gpubox.server.service import UNIT
from gpubox.support import payload, ssh
from gpubox.support.errors import CannotTellError, GpuboxError
from gpubox.support.reading import json_object

_BUSY = 75


def state(box: Box) -> Releases:
    """What is on the box. Errors: cannot tell (it is not reached)."""
    return act(box, "state")


def act(box: Box, action: str, digest: str = "") -> Releases:
    """Do `action` of gpubox.remote.switch. Errors: refused, with the reason; a deploy is at work; cannot tell."""
    alone = [] if action == "state" else ["flock", "--nonblock", f"--conflict-exit-code={_BUSY}", "/run/gpubox.lock"]
    arguments = {"unit": UNIT, "digest": digest, "venv_link": box.settings.venv_path, "by": release.somebody()}
    command = _on(box, [*alone, *payload.words("switch", action)])
    done = subprocess.run(command, input=json.dumps(arguments), capture_output=True, text=True)
    if done.returncode == 0:
        return release.parse(done.stdout.strip())
    said = secrets.text(done.stderr.strip()) or f"exit code {done.returncode}"
    if done.returncode == _BUSY:
        raise GpuboxError(f"{box.name}: another run is at work", "its end")
    raise (GpuboxError if done.returncode == switch.FAILED else CannotTellError)(f"{box.name}: {said}")


def wait(box: Box, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of the probe as they come; the last is `ready`, `failed` or `cannot-tell`."""
    given = json.dumps({**asked, **readiness.about_log(), "thorough": True})
    command = _on(box, payload.words("probe"))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is not None and process.stdout is not None:
            process.stdin.write(given)
            process.stdin.close()
            yield from (json_object(line, "what the probe said") for line in process.stdout if line.startswith("{"))


class Watch:
    """A client on the box that asks all along, from its making to `end`."""

    def __init__(self, box: Box, asked: list[dict[str, Any]]) -> None:
        command = _on(box, payload.words("watch"))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()

    def end(self) -> dict[str, Any] | None:
        """What it saw (gpubox.remote.watch.summary); None: it did not say."""
        said, _ = self._process.communicate()
        return json_object(said, "what the watch said") if said.startswith("{") else None


def _on(box: Box, words: list[str]) -> list[str]:
    sudo = ["sudo", "-n"] if box.connection.get("_sudo") else []
    return [*ssh.command(box.address, box.connection), shlex.join([*sudo, *words])]
