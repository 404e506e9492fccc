"""Run the deploy as people do, and read from pyinfra's own JSON what it changed."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpubox.support import paths


@dataclass(frozen=True)
class Run:
    """One run of the deploy."""

    code: int
    changed: list[str]
    """Operations that changed something, as `gpu01: Base | OS packages`."""
    output: str

    def ended_well(self) -> "Run":
        """Itself; else the end of its output is the failure."""
        if self.code != 0:
            raise AssertionError(f"the deploy ended with {self.code}:\n{self.output[-4000:]}")
        return self


def converge(inventory: Path, *more: str, environment: Mapping[str, str] | None = None) -> Run:
    """`pyinfra -y --json INVENTORY deploy.py`; `environment` is added to this process's own."""
    program = str(Path(sys.executable).parent / "pyinfra")
    command = [program, "-y", "--json", str(inventory), "deploy.py", *more]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=paths.root(), env={**os.environ, **(environment or {})}
    )
    return Run(done.returncode, changed(done.stdout), done.stdout + done.stderr)


def changed(stdout: str) -> list[str]:
    """Operations that changed something, out of pyinfra's JSON."""
    start = stdout.find("{")
    if start < 0:
        return ["(the run printed no result)"]
    results = json.loads(stdout[start:])["results"] or {"operations": []}
    return [f"{host}: {one['name']}" for one in results["operations"] for host in one["success"]]
