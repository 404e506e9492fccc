"""Fetch a model from the Hugging Face hub onto the box, and say whether it is whole.

Runs with the venv's own python, whose huggingface_hub does the transfer; its words: `look` or `fetch`, and maybe
`text`. Arguments are one JSON object on stdin (`Arguments`); events come out as JSON lines: `progress`, `retry`, and at
the end `complete` (with `path` and `revision`), `incomplete` (with `lacks`) or `failed` (with `cause` and `todo`);
`text` makes them lines for people.
Exit codes: 0 complete, 1 not complete, 2 could not tell (wrong arguments, no huggingface_hub).
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from gpubox.remote import weights_cache as cache
from gpubox.remote.arguments import parse
from gpubox.remote.weights_cache import Arguments, Manifest

COMPLETE, NOT_COMPLETE, CANNOT_TELL = 0, 1, 2
BEAT_S = 2.0


class FailedError(Exception):
    """It cannot be had; `todo` says what a person can do."""

    def __init__(self, cause: str, todo: str) -> None:
        super().__init__(cause)
        self.todo = todo


def fetch(arguments: Arguments) -> dict[str, Any]:
    """Fetch what is missing, resume what is half there; the final event. Errors: FailedError."""
    present = cache.look(arguments)
    if present["event"] == "complete" and re.fullmatch("[0-9a-f]{40}", arguments.revision):
        return present
    token = _token(arguments.token_file)
    manifest = _persist(arguments, lambda: _ask(arguments, token))
    _check_room(arguments, manifest)
    _persist(arguments, lambda: _download(arguments, manifest, token))
    cache.write_manifest(arguments, manifest)
    return cache.look(arguments)


def said(event: dict[str, Any]) -> str:
    """One event for people."""
    if event["event"] == "progress":
        done, total, rate = (event[key] for key in ("done_bytes", "total_bytes", "bytes_per_s"))
        left = f", {(total - done) / rate / 60:.0f} min left" if rate else ""
        return f"{_gib(done)} of {_gib(total)}, {rate / 1e6:.0f} MB/s{left}"
    if event["event"] == "retry":
        return f"attempt {event['attempt']} failed: {event['why']}; again in {event['pause_s']:.0f} s"
    if event["event"] == "complete":
        return f"complete: {event['path']} ({_gib(event['bytes'])})"
    if event["event"] == "incomplete":
        return f"incomplete, it lacks {', '.join(event['lacks'])}"
    return f"{event['event']}: {event['cause']}\n  to do:  {event['todo']}"


def main(words: list[str]) -> int:
    """Read the arguments, act, print events; returns the exit code."""
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # progress comes as events
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_XET_CHUNK_CACHE_SIZE_BYTES"] = "0"  # up to 10 GB of no use here (huggingface_hub#3390)
    os.environ.pop("HF_HUB_OFFLINE", None)
    actions = {"look": cache.look, "fetch": fetch}
    try:
        final = actions[words[0]](parse(Arguments, sys.stdin.read()))
    except FailedError as error:
        final = {"event": "failed", "cause": str(error), "todo": error.todo}
    except (ValueError, TypeError, LookupError) as error:
        _event("cannot-tell", cause=f"{error!r}", todo=f"one of {'|'.join(actions)}, and its arguments")
        return CANNOT_TELL
    except ImportError as error:
        _event("cannot-tell", cause=f"{error}", todo="run with the python of a venv that has huggingface_hub")
        return CANNOT_TELL
    _event(**final)
    return COMPLETE if final["event"] == "complete" else NOT_COMPLETE


def _ask(arguments: Arguments, token: str | None) -> Manifest:
    api = import_module("huggingface_hub").HfApi(endpoint=arguments.endpoint, token=token or False)
    info = api.model_info(arguments.repository, revision=arguments.revision, files_metadata=True)
    files = info.siblings or []
    sizes = {file.rfilename: int(file.size or 0) for file in files}
    blobs = {file.rfilename: str(file.lfs.sha256 if file.lfs else file.blob_id) for file in files}
    return Manifest(str(info.sha), sizes, blobs)


def _download(arguments: Arguments, manifest: Manifest, token: str | None) -> None:
    snapshot_download = import_module("huggingface_hub").snapshot_download
    _remove(cache.damaged(arguments, manifest))
    ended = threading.Event()
    beat = threading.Thread(target=_report, args=(arguments, manifest, ended), daemon=True)
    beat.start()
    try:
        snapshot_download(
            arguments.repository,
            revision=manifest.commit,
            cache_dir=arguments.storage.parent,
            endpoint=arguments.endpoint,
            token=token or False,
        )
    finally:
        ended.set()
        beat.join()
    _remove(cache.half(arguments, manifest))  # left by an attempt that was cut: the whole file is there now
    if lacks := cache.lacking(arguments, manifest):
        _remove(cache.damaged(arguments, manifest))
        raise OSError(f"the hub's library says done, but it lacks {', '.join(lacks[:5])}")


def _persist(arguments: Arguments, act: Any) -> Any:
    attempt = 0
    while True:
        attempt += 1
        try:
            return act()
        except ImportError:
            raise
        except Exception as error:
            _raise_if_final(arguments, error)
            if attempt >= arguments.attempts:
                raise FailedError(
                    f"{arguments.repository}: given up after {attempt} attempts: {_said(error)}",
                    "run again: what is there is kept; with 429 give a token (token_file)",
                ) from error
            if _status(error) == 416:  # a half file that the hub cannot continue (huggingface_hub#2197)
                _remove(sorted((arguments.storage / "blobs").glob("*.incomplete")))
            pause = max(arguments.pause_s * 2 ** (attempt - 1), _retry_after(error))
            _event("retry", why=_said(error), attempt=attempt, pause_s=round(pause, 1))
            time.sleep(pause)


def _raise_if_final(arguments: Arguments, error: Exception) -> None:
    name, status = type(error).__name__, _status(error)
    where = f"{arguments.repository} at {arguments.revision}"
    if name == "RevisionNotFoundError":
        raise FailedError(f"{where}: the hub has no such revision", "correct the revision") from error
    if name == "GatedRepoError" or status in {401, 403, 404}:
        have = "the token is refused" if arguments.token_file else "no token was given"
        todo = "correct the name; for a gated or private one give the token of an account that was granted access"
        raise FailedError(f"{where}: not there, or not for us ({have}; HTTP {status})", todo) from error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        raise FailedError(f"{where}: the disk is full: {error}", "make room, then run again") from error


def _check_room(arguments: Arguments, manifest: Manifest) -> None:
    arguments.storage.mkdir(parents=True, exist_ok=True)
    missing = max(0, manifest.total - cache.fetched(arguments, manifest))
    free, need = shutil.disk_usage(arguments.storage).free, int(missing * arguments.room)
    if free < need:
        raise FailedError(
            f"{arguments.storage} has {_gib(free)} free; {_gib(need)} are needed for {arguments.repository}",
            "make room there, or set another cache (hub.cache of the box)",
        )


def _report(arguments: Arguments, manifest: Manifest, ended: threading.Event) -> None:
    began, first = time.monotonic(), cache.fetched(arguments, manifest)
    while not ended.wait(BEAT_S):
        done = cache.fetched(arguments, manifest)
        rate = (done - first) / (time.monotonic() - began)
        _event("progress", done_bytes=done, total_bytes=manifest.total, bytes_per_s=int(rate))


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        if Path(path).stat().st_mode & 0o077:
            raise FailedError(f"{path} can be read by others", f"chmod 600 {path}")
        return Path(path).read_text().strip() or None
    except OSError as error:
        raise FailedError(f"the token cannot be read: {error}", f"put it into {path}, mode 600") from error


def _status(error: BaseException) -> int | None:
    """HTTP status of an error or of what caused it: the library wraps what went wrong on the way."""
    response = getattr(error, "response", None)
    if response is not None:
        return int(response.status_code)
    return _status(error.__cause__) if error.__cause__ is not None else None


def _retry_after(error: BaseException) -> float:
    response = getattr(error, "response", None)
    text = response.headers.get("Retry-After", "") if response is not None else ""
    return min(float(text), 600.0) if text.isdigit() else 0.0


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _event(event: str, **more: object) -> None:
    print(said({"event": event, **more}) if "text" in sys.argv else json.dumps({"event": event, **more}), flush=True)
