"""Weights: the real huggingface_hub against a small server that speaks the hub's protocol, and breaks it on purpose."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typing_extensions import override

from gpubox.remote import weights
from gpubox.support import paths
from tests.unit import sent

HUB = "1.33.0"  # as in the practice machine's lock
REPOSITORY, COMMIT = "maker/model", "a" * 40
SHARDS = {f"model-0000{n}-of-00002.safetensors": bytes([n]) * 300_000 for n in (1, 2)}
FILES = {
    "config.json": b"{}",
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {str(n): name for n, name in enumerate(SHARDS)}}
    ).encode(),
    **SHARDS,
}
SHARD = sorted(SHARDS)[0]


class Hub(ThreadingHTTPServer):
    """One model. `faults`: path's end -> what goes wrong with each request in turn, none once they are used up."""

    daemon_threads = True

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__((address, 0), Handler)
        self.files = dict(FILES)
        self.faults: dict[str, list[str]] = {}
        self.asked: Counter[str] = Counter()
        self.tokens: set[str | None] = set()
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def fault(self, path: str) -> str:
        for end, faults in self.faults.items():
            if path.endswith(end) and faults:
                return faults.pop(0)
        return ""

    @override
    def handle_error(self, *_: Any) -> None:
        """A client that was cut off is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    @override
    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.server.asked[f"{self.command} {path.rpartition('/')[2]}"] += 1
        self.server.tokens.add(self.headers["Authorization"])
        fault = self.server.fault(f"{self.command} {path}")
        if fault.isdigit():
            return self._send(int(fault), b"{}", {"Retry-After": "0", **self._error(fault)}, body)
        if path.startswith(f"/api/models/{REPOSITORY}/revision/"):
            return self._send(200, json.dumps(self._info()).encode(), {}, body)
        if path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            return self._send(200, json.dumps(self._tree()).encode(), {}, body)
        name = path.removeprefix(f"/{REPOSITORY}/resolve/{COMMIT}/")
        if name not in self.server.files:
            return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"}, body)
        return self._file(name, fault, body)

    def _error(self, status: str) -> dict[str, str]:
        codes = {"401": "RepoNotFound", "403": "GatedRepo", "404": "RevisionNotFound"}
        return {"X-Error-Code": codes[status]} if status in codes else {}

    def _info(self) -> dict[str, Any]:
        entries = [{"rfilename": f["path"], "size": f["size"], "blobId": f["oid"], **lfs(f)} for f in self._tree()]
        return {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "siblings": entries}

    def _tree(self) -> list[dict[str, Any]]:
        return [
            {
                "type": "file",
                "path": name,
                "size": len(content),
                "oid": hashlib.sha1(content, usedforsecurity=False).hexdigest(),
                **({"lfs": {"oid": digest(content), "size": len(content), "pointerSize": 1}} if name in SHARDS else {}),
            }
            for name, content in self.server.files.items()
        ]

    def _file(self, name: str, fault: str, body: bool) -> None:
        content = self.server.files[name]
        tag = digest(content) if name in SHARDS else hashlib.sha1(content, usedforsecurity=False).hexdigest()
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"', "Accept-Ranges": "bytes"}
        headers["X-Linked-Size"], headers["X-Linked-ETag"] = str(len(content)), f'"{tag}"'
        first = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        sent = content[first:]
        if fault == "short":
            return self._send(206 if first else 200, sent[:-1000], headers, body)
        if fault == "cut" and body:
            self.close_connection = True
            return self._send(206 if first else 200, sent[: len(sent) // 2], headers, body, claim=len(sent))
        return self._send(206 if first else 200, sent, headers, body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool, claim: int | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(claim or len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.server.sent += len(content)
            self.wfile.write(content)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def lfs(entry: dict[str, Any]) -> dict[str, Any]:
    if "lfs" not in entry:
        return {}
    return {"lfs": {"sha256": entry["lfs"]["oid"], "size": entry["size"], "pointerSize": 1}}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture(scope="session")
def python() -> str:
    """The python of a venv with the hub's library, made once in the cache."""
    venv = paths.cache() / f"hub-{HUB}"
    if not (venv / "bin/python").exists():
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "--quiet", str(venv)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(venv / "bin/python"), f"huggingface_hub=={HUB}"]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode != 0:
            (venv / "bin/python").unlink()
            pytest.skip(f"huggingface_hub {HUB} could not be installed: {done.stderr[-200:]}")
    return str(venv / "bin/python")


class Box:
    """Runs the script as the box does."""

    def __init__(self, python: str, hub: Hub, cache: Path) -> None:
        self.python, self.cache, self.hub = python, cache, hub

    def run(self, action: str, **more: Any) -> list[dict[str, Any]]:
        arguments = {"repository": REPOSITORY, "revision": COMMIT, "cache": str(self.cache), "pause_s": 0.01}
        environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        done = sent.run(
            "weights",
            action,
            given={**arguments, "endpoint": self.hub.url, **more},
            python=self.python,
            changed={"weights": ("BEAT_S = 2.0", "BEAT_S = 0.001")},
            environment={**environment, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_XET": "1"},
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert events, done.stderr
        assert done.returncode == {"complete": 0, "cannot-tell": 2}.get(events[-1]["event"], 1), done.stderr
        return events

    def contents(self) -> dict[str, bytes]:
        snapshot = self.cache / "models--maker--model/snapshots" / COMMIT
        return {path.name: path.read_bytes() for path in snapshot.iterdir()}

    @property
    def blobs(self) -> Path:
        return self.cache / "models--maker--model/blobs"


@pytest.fixture
def box(python: str, hub: Hub, tmp_path: Path) -> Box:
    return Box(python, hub, tmp_path / "cache")


def test_fetch_then_nothing_to_do(box: Box, hub: Hub) -> None:
    assert box.run("look")[-1]["event"] == "incomplete"
    *progress, final = box.run("fetch")
    assert {event["event"] for event in progress} == {"progress"}
    assert progress[-1]["total_bytes"] == sum(map(len, FILES.values()))
    assert (final["event"], final["revision"], final["bytes"]) == ("complete", COMMIT, sum(map(len, FILES.values())))
    assert box.contents() == FILES
    asked = hub.asked.total()
    assert box.run("look")[-1] == final
    assert box.run("fetch")[-1] == final
    assert hub.asked.total() == asked


def test_a_name_of_a_revision_is_resolved_and_looked_up_again(box: Box) -> None:
    assert box.run("fetch", revision="v1")[-1]["revision"] == COMMIT
    assert box.run("look", revision="v1")[-1]["event"] == "complete"


SURVIVED = {
    "cut in the middle": {f"GET /{REPOSITORY}/resolve/{COMMIT}/{SHARD}": ["cut"] * 2},
    "short file": {f"GET /{REPOSITORY}/resolve/{COMMIT}/{SHARD}": ["short"]},
    "429 for the list": {f"GET /api/models/{REPOSITORY}/revision/{COMMIT}": ["429"] * 2},
    "429 for a file's head": {f"HEAD /{REPOSITORY}/resolve/{COMMIT}/{SHARD}": ["429"] * 2},
    "429 for a file": {f"GET /{REPOSITORY}/resolve/{COMMIT}/{SHARD}": ["429"] * 2},
    "503 for a file": {f"GET /{REPOSITORY}/resolve/{COMMIT}/{SHARD}": ["503"] * 2},
}


@pytest.mark.parametrize("case", SURVIVED)
@pytest.mark.pain("P70", "P71")
def test_survived(box: Box, hub: Hub, case: str) -> None:
    hub.faults = SURVIVED[case]
    events = box.run("fetch")
    assert events[-1]["event"] == "complete", events
    assert not any(hub.faults.values())
    assert box.contents() == FILES
    assert list(box.blobs.glob("*.incomplete")) == []


@pytest.mark.pain("P73")
def test_a_half_file_that_cannot_be_continued_is_fetched_anew(box: Box, hub: Hub) -> None:
    box.blobs.mkdir(parents=True)
    (box.blobs / f"{digest(SHARDS[SHARD])}.incomplete").write_bytes(b"x" * 400_000)
    hub.faults = {f"GET /{REPOSITORY}/resolve/{COMMIT}/{SHARD}": ["416"]}
    assert box.run("fetch")[-1]["event"] == "complete"
    assert box.contents() == FILES


NAMED: dict[str, tuple[dict[str, list[str]], dict[str, Any], str]] = {
    "always short": ({f"/{SHARD}": ["", "short"] * 50}, {"attempts": 2}, "given up after 2 attempts"),
    "always 429": ({"": ["429"] * 500}, {"attempts": 2}, "given up after 2 attempts: .*429"),
    "not for us": ({f"/revision/{COMMIT}": ["401"]}, {}, "not there, or not for us .no token was given; HTTP 401"),
    "gated": ({f"/revision/{COMMIT}": ["403"]}, {}, "not for us"),
    "no such revision": ({f"/revision/{COMMIT}": ["404"]}, {}, "no such revision"),
    "no room": ({}, {"room": 1e12}, "free; .* are needed"),
    "no token file": ({}, {"token_file": "/nowhere"}, "the token cannot be read"),
}


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.pain("P70", "P71", "P72")
def test_named(box: Box, hub: Hub, case: str) -> None:
    faults, more, cause = NAMED[case]
    hub.faults = {end: list(each) for end, each in faults.items()}
    final = box.run("fetch", **more)[-1]
    assert final["event"] == "failed"
    assert re.search(cause, final["cause"]), final
    assert final["todo"]


@pytest.mark.pain("P72")
def test_nothing_is_fetched_without_room(box: Box, hub: Hub) -> None:
    box.run("fetch", room=1e12)
    assert hub.asked == {f"GET {COMMIT}": 1}


@pytest.mark.pain("P70")
def test_a_repository_that_lacks_a_shard_is_not_complete(box: Box, hub: Hub) -> None:
    del hub.files[SHARD]
    final = box.run("fetch", attempts=1)[-1]
    assert final["event"] == "failed"
    assert f"{SHARD} (the index names it, the repository lacks it)" in final["cause"]


DAMAGE: dict[str, tuple[Callable[[Box], None], str]] = {
    "shard cut": (lambda box: os.truncate(box.blobs / digest(SHARDS[SHARD]), 1000), f"{SHARD} (1000 of 300000 bytes)"),
    "shard gone": (lambda box: (box.blobs / digest(SHARDS[SHARD])).unlink(), f"{SHARD} (not there)"),
    "half": (
        lambda box: (box.blobs / f"{digest(SHARDS[SHARD])}.7f.incomplete").touch(),
        f"{digest(SHARDS[SHARD])}.7f.incomplete (half fetched)",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
@pytest.mark.pain("P70")
def test_damage_is_seen_without_the_hub_and_repaired(box: Box, hub: Hub, case: str) -> None:
    damage, lack = DAMAGE[case]
    box.run("fetch")
    damage(box)
    asked = hub.asked.total()
    assert box.run("look")[-1] == {"event": "incomplete", "lacks": [lack], "revision": COMMIT}
    assert hub.asked.total() == asked
    sent = hub.sent
    assert box.run("fetch")[-1]["event"] == "complete"
    assert box.contents() == FILES
    assert hub.sent - sent < 320_000  # the other shard stays


@pytest.mark.pain("P71")
def test_the_token_goes_to_the_hub_and_nowhere_else(box: Box, hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_sekret\n")
    (tmp_path / "token").chmod(0o644)
    assert "can be read by others" in box.run("fetch", token_file=str(tmp_path / "token"))[-1]["cause"]
    (tmp_path / "token").chmod(0o600)
    events = box.run("fetch", token_file=str(tmp_path / "token"))
    assert events[-1]["event"] == "complete"
    assert hub.tokens == {"Bearer hf_sekret"}
    assert "sekret" not in json.dumps(events)


def test_looking_needs_no_library(remote_python: str, tmp_path: Path) -> None:
    given = {"repository": REPOSITORY, "revision": COMMIT, "cache": str(tmp_path)}
    done = sent.run("weights", "look", given=given, python=remote_python)
    assert (done.returncode, json.loads(done.stdout)["event"]) == (1, "incomplete")


def test_without_a_library_it_cannot_tell(box: Box) -> None:
    box.python = sys.executable
    assert box.run("fetch")[-1]["event"] == "cannot-tell"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"event": "progress", "done_bytes": 2**30, "total_bytes": 4 * 2**30, "bytes_per_s": 10**8},
            "1.0 GiB of 4.0 GiB, 100 MB/s, 1 min left",
        ),
        ({"event": "progress", "done_bytes": 0, "total_bytes": 2**30, "bytes_per_s": 0}, "0.0 GiB of 1.0 GiB, 0 MB/s"),
        ({"event": "retry", "attempt": 1, "why": "429", "pause_s": 5.0}, "attempt 1 failed: 429; again in 5 s"),
        ({"event": "complete", "path": "/m", "bytes": 2**30}, "complete: /m (1.0 GiB)"),
        ({"event": "incomplete", "lacks": ["a", "b"]}, "incomplete, it lacks a, b"),
        ({"event": "failed", "cause": "c", "todo": "t"}, "failed: c\n  to do:  t"),
    ],
)
def test_lines_for_people(event: dict[str, Any], line: str) -> None:
    assert weights.said(event) == line
