"""Measure: run a plan in a place and keep the record, whole at every moment."""

import contextlib
import hashlib
import importlib.metadata
import io
import subprocess
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpubox.bench import record as records
from gpubox.bench.fold import fold
from gpubox.bench.place import Place
from gpubox.bench.record import Record
from gpubox.bench.runner import Runner
from gpubox.remote.bench.plan import Plan
from gpubox.support import files
from gpubox.support.errors import GpuboxError

Show = Callable[[dict[str, Any]], None]


def new_folder(runs: Path, name: str) -> Path:
    """A folder of its own below `runs`, named by time (UTC) and name; nothing is ever overwritten."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    for number in range(1, 100):
        folder = runs / f"{stamp}-{name}{'' if number == 1 else f'-{number}'}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise GpuboxError(f"cannot make {folder}: {error.strerror}") from error
        return folder
    raise GpuboxError(f"100 runs named {stamp}-{name} in {runs}")


def measure(place: Place, plan: Plan, record: Record, folder: Path, show: Show) -> Record:
    """Runs the plan and returns the record, which is saved in `folder` after every event that changes it.

    Ctrl-C ends the run in good order, which may take as long as an import of SGLang: the verdict is then `interrupted`,
    also for somebody who has no patience and presses it again.
    """
    keeper = _Keeper(record, folder, show)
    runner = Runner(place, plan, folder / "runner.err")
    try:
        keeper.hear(runner)
    except KeyboardInterrupt:
        runner.stop()
        show({"event": "stopping"})
        with contextlib.suppress(KeyboardInterrupt):
            keeper.hear(runner)
        keeper.close("interrupted", "stopped by Ctrl-C or SIGTERM")
    finally:
        runner.end()
    keeper.close("failed" if keeper.heard else "cannot tell", _last_words(folder / "runner.err"))
    return _with_raw_files(place, plan, keeper.record, folder)


def catalogue_digest() -> str | None:
    """Which facts judged a run: a digest of the catalogue's data; None: there is none."""
    base = Path(__file__).parent.parent / "catalog"
    data = sorted(file for file in base.rglob("*") if file.suffix in {".yaml", ".json"})
    whole = hashlib.sha256()
    for file in data:  # with names and lengths, so that no two catalogues read as the same bytes
        content = file.read_bytes()
        whole.update(f"{file.relative_to(base).as_posix()} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:12] if data else None


def blank(folder: Path, label: str, host: str | None = None, profile: str | None = None) -> Record:
    """The record of a run that has just begun."""
    return Record(
        id=folder.name,
        label=label,
        host=host,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        gpubox=_version(),
        catalogue=catalogue_digest(),
        verdict="running",
        warm_ups=[],
        server=records.Server(profile=profile),
    )


def _version() -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # run from a folder that was not installed
        return importlib.metadata.version("gpubox")
    return None


class _Keeper:
    """Holds the record and saves every change."""

    def __init__(self, record: Record, folder: Path, show: Show) -> None:
        self.record, self.heard = record, False
        self._path, self._show = folder / "record.json", show
        records.save(record, self._path)

    def hear(self, runner: Runner) -> None:
        for event in runner.events():
            self.heard = True
            self._keep(fold(self.record, event))
            self._show(event)

    def close(self, verdict: records.Verdict, problem: str) -> None:
        """For a run that ended without a verdict of its own."""
        if self.record.verdict == "running":
            self._keep(self.record.model_copy(update={"verdict": verdict, "problem": problem}))

    def _keep(self, record: Record) -> None:
        if record is not self.record:
            self.record = record
            records.save(record, self._path)


def _last_words(errors: Path) -> str:
    lines = [line.strip() for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    return f"the runner ended without a verdict: {lines[-1][:300] if lines else 'it said nothing'}"


def _with_raw_files(place: Place, plan: Plan, record: Record, folder: Path) -> Record:
    """Fetches the raw files, names them in the record, and leaves the record beside them on the box."""
    raw = folder / "raw"
    if place.prefix:
        files.make_folder(raw)
        _fetch(place, plan.folder, raw)
    kept = sorted(str(file.relative_to(folder)) for file in raw.glob("*") if file.name != "runner.zip")
    record = record.model_copy(update={"raw": kept})
    records.save(record, folder / "record.json")
    if place.prefix:
        _push(place, f"{plan.folder}/record.json", records.dumps(record))
    return record


def _fetch(place: Place, source: str, target: Path) -> None:
    words = place.command(["tar", "-C", source, "--exclude=runner.zip", "-czf", "-", "."])
    done = subprocess.run(words, capture_output=True, timeout=600, check=False)
    if done.returncode == 0:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
            for member in packed:  # flat; and Debian 12's Python has no `filter` that would keep out the rest
                file = packed.extractfile(member) if member.isfile() else None
                if file is not None and len(Path(member.name).parts) == 1:
                    files.write(target / member.name, file.read())


def _push(place: Place, target: str, text: str) -> None:
    words = place.command([place.python, "-c", "import sys; open(sys.argv[1], 'x').write(sys.stdin.read())", target])
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(words, input=text, text=True, capture_output=True, timeout=60, check=False)
