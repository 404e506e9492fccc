"""Read runs: our own records, and what other people's servers and clients left behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpubox.bench import record as records
from gpubox.bench.fold import fold_file
from gpubox.bench.readers import serverlog, serving
from gpubox.bench.record import Record, Row, Server
from gpubox.support.errors import GpuboxError

_ACCEPTED = (
    "a record or folder of gpubox, an SGLang server log (with its `server_args=` line), or what bench_serving wrote "
    "(text or JSONL); a folder may hold a log and results together"
)


def read(path: Path) -> Record:
    """The run in a file or folder. Error: nothing there that is understood."""
    if path.is_dir():
        return _folder(path)
    if path.name == "events.jsonl":
        with _naming(path):
            return fold_file(_blank(path), path)
    text = _text(path)
    if '"schema_version"' in text[:200]:
        return records.load(path)
    with _naming(path):
        server, rows = serverlog.server(text), serving.rows(text)
    if server is None and not rows:
        raise GpuboxError(f"{path} holds no run", _ACCEPTED)
    notes = serverlog.notes(text) if server else []
    return _blank(path).model_copy(update={"server": server or serving.server(text), "rows": rows, "notes": notes})


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except GpuboxError as error:
        raise GpuboxError(f"{path}: {error.found}", error.needed, error.todo) from error


def _folder(path: Path) -> Record:
    for name in ("record.json", "events.jsonl", "raw/events.jsonl"):
        if (path / name).is_file():
            return read(path / name)
    parts = [part for file in sorted(path.iterdir()) if file.is_file() and (part := _maybe(file)) is not None]
    if not parts:
        raise GpuboxError(f"{path} holds no run", _ACCEPTED)
    described = [part.server for part in parts if part.server != Server()]
    rows: list[Row] = [row for part in parts for row in part.rows]
    notes = [note for part in parts for note in part.notes]
    with_argv = sorted(described, key=lambda server: server.server_args is None)
    found = {"server": with_argv[0] if with_argv else Server(), "rows": rows, "notes": notes}
    return _blank(path).model_copy(update=found)


def _maybe(file: Path) -> Record | None:
    try:
        return read(file)
    except GpuboxError:
        return None


def _blank(path: Path) -> Record:
    label = path.stem if path.is_file() else path.name
    return Record(id=label, label=label, kind="foreign", source=path.name)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise GpuboxError(f"cannot read {path}: {error.strerror}") from error
