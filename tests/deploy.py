"""Run the deploy as people do, and read from pyinfra's own JSON what it changed."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpubox import paths


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


def converge(inventory: Path, *more: str) -> Run:
    """`pyinfra -y --json INVENTORY deploy.py`."""
    program = str(Path(sys.executable).parent / "pyinfra")
    command = [program, "-y", "--json", str(inventory), "deploy.py", *more]
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.root())
    return Run(done.returncode, _changed(done.stdout), done.stdout + done.stderr)


def _changed(stdout: str) -> list[str]:
    start = stdout.find("{")
    if start < 0:
        return ["(the run printed no result)"]
    results = json.loads(stdout[start:])["results"] or {"operations": []}
    return [f"{host}: {one['name']}" for one in results["operations"] for host in one["success"]]
