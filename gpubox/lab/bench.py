"""`make bench`: what the deploy itself costs on the practice machine, first and when there is nothing to do."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from gpubox.support import paths
from gpubox.support.errors import GpuboxError

BOX = "gpu01"
BASELINE = Path(__file__).with_name("baseline.json")
Row = dict[str, float]


@click.command()
@click.option("--keep", is_flag=True, help="Keep the figures as the baseline.")
@click.option("--repeat", default=3, show_default=True, help="No-op runs; their median counts.")
def command(keep: bool, repeat: int) -> None:
    """Time a first converge of a bare gpu01 (packages cached) and no-op ones; count round trips and remote CPU.

    Seconds are of this machine at this moment: only compare figures of one run, or their ratios.
    """
    console = Console(stderr=True)
    console.print(f"resetting {BOX} to a bare box")
    subprocess.run([sys.executable, "-m", "gpubox.cli", "lab", "reset", BOX], check=True, capture_output=True)
    with console.status("first converge"):
        first = _run()
    rows = []
    for number in range(repeat):
        with console.status(f"no-op converge {number + 1} of {repeat}"):
            rows.append(_run())
    figures = {"first converge": first, "no-op converge": _median(rows)}
    Console().print(_table(figures))
    if keep:
        BASELINE.write_text(json.dumps(figures, indent=2) + "\n")


def _run() -> Row:
    with tempfile.TemporaryDirectory(prefix="gpubox-bench-") as folder:
        counts = Path(folder) / "counts.json"
        command = [sys.executable, "-m", "gpubox.lab.counted", str(counts), "-y", "inventory/lxc.py", "deploy.py"]
        cpu, began = _cpu_s(), time.monotonic()
        done = subprocess.run(command, cwd=paths.root(), capture_output=True, text=True)
        took, used = time.monotonic() - began, _cpu_s() - cpu
        if done.returncode != 0:
            raise GpuboxError(f"the deploy ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
        idle = _cpu_s()
        time.sleep(min(took, 3))
        rate = (_cpu_s() - idle) / min(took, 3)
        seen = json.loads(counts.read_text())
    trips = sum(seen.values())
    return {"seconds": round(took, 2), "round trips": trips, "remote CPU s": round(max(used - rate * took, 0), 2)}


def _cpu_s() -> float:
    """CPU seconds that the box has used so far, after the control group of its container."""
    for found in Path("/sys/fs/cgroup").rglob(f"lxc.payload.{BOX}"):
        if (found / "cpuacct.usage").exists():
            return int((found / "cpuacct.usage").read_text()) / 1e9
        if (found / "cpu.stat").exists() and "usage_usec" in (text := (found / "cpu.stat").read_text()):
            return int(text.split("usage_usec", 1)[1].split()[0]) / 1e6
    raise GpuboxError(f"no control group of {BOX}", "a running practice machine", "make lab-up")


def _median(rows: list[Row]) -> Row:
    return {key: round(statistics.median(row[key] for row in rows), 2) for key in rows[0]}


def _table(figures: dict[str, Row]) -> Table:
    baseline: dict[str, Row] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    table = Table(
        "run", "seconds", "round trips", "remote CPU s", "baseline (s / trips / CPU s)", title="deploy of gpu01"
    )
    for name, row in figures.items():
        before = baseline.get(name)
        table.add_row(name, *map(str, row.values()), " / ".join(map(str, before.values())) if before else "none yet")
    return table


if __name__ == "__main__":
    command()
