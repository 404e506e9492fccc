"""Find a run by what people call it: a file, a run below runs/, or a reference that ships with gpubox."""

import difflib
from pathlib import Path

from gpubox.bench import readers
from gpubox.bench import record as records
from gpubox.bench.record import Record
from gpubox.support.errors import GpuboxError


def find(name: str, runs: Path) -> Record:
    """The run: a path, the name of a folder below `runs` (or its label: the newest one), a reference's name."""
    if Path(name).exists():
        return readers.read(Path(name))
    if (runs / name / "record.json").is_file():
        return records.load(runs / name / "record.json")
    labelled = [record for record in measured(runs) if record.label == name]
    if labelled:
        return labelled[-1]
    if (path := _folder() / f"{name}.json").is_file():
        return records.load(path)
    known = [*reference_names(), *(record.id for record in measured(runs))]
    near = difflib.get_close_matches(name, known, 3, 0.4)
    raise GpuboxError(
        f"no run {name!r}: no such file, nothing in {runs}/, no reference of that name",
        f"a file, a folder below {runs}/, or one of the references: {', '.join(reference_names())}",
        f"did you mean {' or '.join(near)}?" if near else "",
    )


def measured(runs: Path) -> list[Record]:
    """All records below `runs`, oldest first."""
    return [records.load(path) for path in sorted(runs.glob("*/record.json"))]


def reference_names() -> list[str]:
    """Runs that ship with gpubox: other hardware, other releases."""
    return sorted(path.stem for path in _folder().glob("*.json"))


def references() -> list[Record]:
    """The runs that ship with gpubox."""
    return [records.load(_folder() / f"{name}.json") for name in reference_names()]


def _folder() -> Path:
    return Path(__file__).parent / "references"
