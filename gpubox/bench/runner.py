"""Send the runner, follow its events, end it. It lives as long as its standard input stays open."""

import base64
import contextlib
import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gpubox
from gpubox.bench.place import Place
from gpubox.remote import bench as onbox
from gpubox.remote.bench.plan import Plan
from gpubox.support.errors import GpuboxError

_BOOT = """
import base64, json, os, sys
given = json.loads(sys.stdin.readline())
folder = given["plan"]["folder"]
os.makedirs(folder)
archive = os.path.join(folder, "runner.zip")
with open(archive, "wb") as out:
    out.write(base64.b64decode(given["archive"]))
sys.path.insert(0, archive)
from gpubox.remote.bench.main import main
sys.exit(main(given["plan"]))
"""
_ALSO = ("remote/cgroup.py", "remote/probe.py")


class Runner:
    """The runner at work in some place."""

    def __init__(self, place: Place, plan: Plan, errors: Path) -> None:
        """Starts it; what it prints besides events goes to the new file `errors`."""
        words = place.command([place.python, "-c", _BOOT])
        try:
            with errors.open("xb") as err:
                self._process = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True
                )
        except OSError as error:
            raise GpuboxError(f"cannot start {words[0]}: {error.strerror}", "a program that runs here") from error
        self._send({"plan": asdict(plan), "archive": base64.b64encode(archive()).decode()})

    def events(self) -> Iterator[dict[str, Any]]:
        """Its events until it ends; may be asked again to hear the rest."""
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event

    def stop(self) -> None:
        """Asks it to end by closing its standard input; its last events are still to come."""
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()

    def end(self) -> None:
        """Makes sure that it has ended: it gets 60 s to stop its own child."""
        self.stop()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it ended already; its own words are in `errors`
            if self._process.stdin:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()


def archive() -> bytes:
    """The runner as a zip file that Python imports from: our package, reduced to what needs nothing but Python."""
    base = Path(gpubox.__file__).parent
    files = [*Path(onbox.__file__).parent.glob("*.py"), *(base / name for name in _ALSO)]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("__init__.py", "remote/__init__.py"):
            packed.writestr(f"gpubox/{name}", "")
        for file in files:
            packed.write(file, f"gpubox/{file.relative_to(base)}")
    return out.getvalue()
