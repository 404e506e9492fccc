"""Readiness: the decision on tables with a made-up clock, and the whole probe against a server that a test scripts."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typing_extensions import override

from gpubox.remote import probe
from gpubox.remote.probe import Arguments, Decision, Look, Progress, Unit, decide, judge_answer, long_prompt
from gpubox.remote.seen import Seen
from gpubox.server import readiness
from tests.unit import sent

RUNNING = Unit("active", "running", "success", 0, "0")
ARGUMENTS = Arguments(
    "http://x",
    "m",
    "u.service",
    timeout_s=1000,
    limits_s={"import": 50, "load": 300, "capture": 100},
    phases=[["load", "Load weight begin"], ["capture", "Capture .*begin"], ["warm-up", "startup complete"]],
    fatal=["out of memory"],
)
LOAD, CAPTURE = "TP0 Load weight begin", "TP0 Capture cuda graph begin"


def follow(*looks: Look, restarts: int | None = None) -> Decision:
    decision = Decision("wait", Progress(ARGUMENTS, restarts=restarts))
    for look in looks:
        assert decision.todo == "wait"
        decision = decide(decision.progress, look)
    return decision


WAITING = [
    [Look(0, RUNNING, None)],
    [Look(49, RUNNING, None)],
    [Look(40, RUNNING, 503, lines=(LOAD,)), Look(339, RUNNING, 503)],
    [Look(40, RUNNING, 503, lines=(LOAD, CAPTURE)), Look(139, RUNNING, 503, lines=(LOAD,))],
    [Look(40, RUNNING, 503, lines=("startup complete",)), Look(999, RUNNING, 503)],
    [Look(0, replace(RUNNING, restarts=7), None), Look(1, replace(RUNNING, restarts=7), None)],
    [Look(1, RUNNING, 503, lines=("CUDA out of memory",)), Look(49, RUNNING, 503)],
    [Look(0, Unit("activating", "start", "success", 0, ""), None)],
]

FAILED = [
    ([Look(50, RUNNING, None)], "phase import takes longer than its 50 s: nothing listens"),
    ([Look(40, RUNNING, 503, lines=(LOAD,)), Look(340, RUNNING, 503)], "phase load .* 300 s: /health says 503"),
    ([Look(40, RUNNING, 503, lines=(LOAD, CAPTURE)), Look(140, RUNNING, 503, lines=(LOAD,))], "phase capture"),
    (
        [Look(40, RUNNING, 503, lines=("startup complete",)), Look(1000, RUNNING, 503)],
        "not ready after 1000 s, in phase warm-up: /health says 503",
    ),
    (
        [Look(40, RUNNING, None, "/health: timed out", (CAPTURE,)), Look(140, RUNNING, None, "/health: timed out")],
        "timed",
    ),
    (
        [Look(1, Unit("failed", "failed", "exit-code", 0, "2"), None)],
        "the unit failed: result exit-code, exit status 2",
    ),
    ([Look(1, Unit("activating", "auto-restart", "signal", 0, "9"), None)], "systemd is about to start it again"),
    ([Look(1, Unit("inactive", "dead", "success", 0, "0"), None)], "the unit is inactive"),
    ([Look(0, RUNNING, None), Look(1, replace(RUNNING, restarts=1), 200)], "restarted by systemd .1 times"),
    (
        [Look(1, RUNNING, 503, lines=("CUDA out of memory",)), Look(61, RUNNING, 503)],
        "the log says: CUDA out of memory",
    ),
    (
        [Look(1, Unit("failed", "failed", "exit-code", 0, "1"), None, lines=("CUDA out of memory",))],
        "exit status 1$",
    ),
]

ASKING = [
    [Look(0, RUNNING, 200)],
    [Look(2000, RUNNING, 200)],
    [
        Look(1, RUNNING, 503, lines=("CUDA out of memory",)),
        Look(40, RUNNING, 503, lines=(LOAD,)),
        Look(61, RUNNING, 200),
    ],
]


OURS = ("python3", "-m", "sglang.launch_server")
IDLE = replace(ARGUMENTS, limits_s={}, idle_s=100)
EXITED = replace(RUNNING, sub="exited")


def seen_at(at_s: float, unit: Unit = RUNNING, health: int | None = None, **more: Any) -> Look:
    return Look(at_s, unit, health, seen=Seen(**{"main": 7, "words": OURS, "count": 1, **more}))


GOES_ON = [
    [seen_at(0), seen_at(99)],
    [seen_at(0), seen_at(90, cpu_s=1), seen_at(180, cpu_s=1.2)],
    [seen_at(0), seen_at(90, read=2 << 20), seen_at(180, read=2 << 20)],
    [seen_at(0), seen_at(90, on_disk=True), seen_at(180, on_disk=True)],
    [seen_at(0), replace(seen_at(90), lines=("still here",)), seen_at(180)],
    [seen_at(0), seen_at(90, main=8), seen_at(180, main=8)],
    [seen_at(0, words=("sglang::http_server",))],
    [seen_at(0, words=())],
    [seen_at(0, main=0, words=(), count=0), seen_at(2, main=0, words=(), count=0), seen_at(4)],
    [seen_at(0, Unit("activating", "start-pre", "success", 0, "0"), words=("/bin/sh", "-c", "x"))],
]
ENDS_EARLY = [
    (
        [seen_at(0, words=("sleep", "inf"))],
        "the main process is not the server: process 7 .sleep inf.*asks for",
    ),
    ([seen_at(0, health=200, words=("nginx",))], "the main process is not the server: process 7 .nginx."),
    ([seen_at(0), seen_at(100, cpu_s=0.3)], "nothing has moved for 100 s, no line of the log.*process 7 .python3 -m"),
    (
        [seen_at(0, EXITED, main=0, words=(), count=0), seen_at(3, EXITED, main=0, words=(), count=0)],
        "the unit is active .exited. and has no process",
    ),
]


def followed(looks: list[Look]) -> Decision:
    decision = Decision("wait", Progress(IDLE, argv=OURS))
    for look in looks:
        assert decision.todo == "wait", decision.cause
        decision = decide(decision.progress, look)
    return decision


@pytest.mark.parametrize("looks", GOES_ON)
def test_a_start_that_may_succeed_is_waited_for(looks: list[Look]) -> None:
    assert followed(looks).todo == "wait"


@pytest.mark.parametrize(("looks", "cause"), ENDS_EARLY)
def test_a_start_that_cannot_succeed_ends_early(looks: list[Look], cause: str) -> None:
    decision = followed(looks)
    assert decision.todo == "failed"
    assert re.search(cause, decision.cause), decision.cause


def test_a_server_that_answers_may_rest() -> None:
    assert followed([seen_at(0), seen_at(500, health=200)]).todo == "ask"


def test_waiting_says_what_is_waited_for_and_what_is_seen() -> None:
    looks = [replace(seen_at(0, cpu_s=3), lines=(LOAD,)), seen_at(40, cpu_s=3.2)]
    progress = followed(looks).progress
    event = {"at_s": 40.0, **probe.waiting(progress, looks[-1])}
    assert readiness.beat(event) == (
        "load, 40 s (40 of 1000 s in all); process 7 (python3 -m sglang.launch_server) is in state unknown, "
        f"3.2 s of CPU; nothing has moved for 40 s; last line of the log: {LOAD}"
    )


@pytest.mark.parametrize("looks", WAITING)
@pytest.mark.pain("P63")
def test_wait(looks: list[Look]) -> None:
    assert follow(*looks).todo == "wait"


@pytest.mark.parametrize(("looks", "cause"), FAILED)
@pytest.mark.pain("P48", "P66", "P68", "P88")
def test_failed(looks: list[Look], cause: str) -> None:
    decision = follow(*looks)
    assert decision.todo == "failed"
    assert re.search(cause, decision.cause), decision.cause


@pytest.mark.parametrize("looks", ASKING)
def test_ask(looks: list[Look]) -> None:
    assert follow(*looks).todo == "ask"


@pytest.mark.pain("P68")
def test_a_restart_before_the_first_look_is_news_after_a_start() -> None:
    assert follow(Look(0, replace(RUNNING, restarts=1), None), restarts=0).todo == "failed"


def test_telling_lines_are_kept_whatever_happens() -> None:
    lines = ("NaN detected! a", "  NaN detected!", "NaN detected! b", "undefined symbol: x")
    before = Progress(replace(ARGUMENTS, telling=["undefined symbol", "NaN", "never"]))
    after = decide(before, Look(0, RUNNING, 200, lines=lines)).progress
    assert [line for _, line in after.telling] == ["NaN detected! a", "undefined symbol: x"]


def reply(text: str | None, *logprobs: Any, token: str = "", **message: Any) -> dict[str, Any]:
    content = [{"token": token or str(number), "logprob": value} for number, value in enumerate(logprobs)]
    return {"choices": [{"message": {"content": text, **message}, "logprobs": {"content": content}}]}


@pytest.mark.parametrize(
    ("answer", "known", "fault"),
    [
        (reply("the sea", -1.0, -2), None, None),
        (reply(" 4\n"), "4", None),
        (reply(None, -1.0, reasoning_content="Thinking"), None, None),
        (reply("one word one word", *[-0.1] * 7, token="w"), None, None),
        ({"choices": [{"message": {"content": "no logprobs"}}]}, None, None),
        (reply("5"), "4", "answered '5', expected '4'"),
        (reply(""), None, "answered nothing"),
        (reply("  \n"), None, "answered nothing"),
        (reply(None), None, "answered nothing"),
        (reply("!!!!!!!!", *[-0.1] * 8, token="!"), None, "answered one token 8 times: '!'"),
        (reply("x", float("nan")), None, "NaN"),
        (reply("x", float("-inf")), None, "NaN"),
        (reply("x", None), None, "NaN"),
    ],
)
@pytest.mark.pain("P41", "P42", "P53")
def test_judge_answer(answer: dict[str, Any], known: str | None, fault: str | None) -> None:
    found = judge_answer(answer, known)
    assert (found is None) == (fault is None)
    assert fault is None or fault in str(found)


@pytest.mark.parametrize("answer", [None, "a known answer"])
@pytest.mark.parametrize("context", [256, 2048, 200000])
@pytest.mark.pain("P51")
def test_a_long_prompt_fits_the_context(answer: str | None, context: int) -> None:
    messages = long_prompt(replace(ARGUMENTS, answer=answer), context)
    size = sum(len(message["content"]) for message in messages)
    assert size <= context // 2 + len(ARGUMENTS.prompt) + 1
    assert messages[-1]["role"] == "user"
    assert messages[-1]["content"].endswith(ARGUMENTS.prompt)
    assert size > 1000 or context < 3000


class Server(ThreadingHTTPServer):
    """Answers as `script` says: (path) -> status, body; `asked` counts completions."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.health: list[int] = [200]
        self.answers: list[tuple[int, Any]] = [(200, reply("fine", -1.0))]
        self.asked = 0
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    @override
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            return self._send(200, {"data": [{"max_model_len": 4096}]})
        health = self.server.health
        return self._send(health.pop(0) if len(health) > 1 else health[0], {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        self.server.keys.append(self.headers["Authorization"])
        answers = self.server.answers
        self._send(*answers[min(self.server.asked, len(answers)) - 1])

    def _send(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def box(tmp_path: Path, remote_python: str) -> Path:
    """A folder with a systemctl that prints `unit` and a journalctl that prints `journal`, and its Python."""
    (tmp_path / "python3").symlink_to(remote_python)
    for name, file in {"systemctl": "unit", "journalctl": "journal"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncat {tmp_path}/{file}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "journal").write_text("INFO: hello\nLoad weight begin\n-- cursor: s=1\n")
    unit("active", "running", "success", tmp_path)
    return tmp_path


def unit(active: str, sub: str, result: str, box: Path) -> None:
    lines = ["LoadState=loaded", f"ActiveState={active}", f"SubState={sub}", f"Result={result}", "NRestarts=0"]
    (box / "unit").write_text("\n".join([*lines, "ExecMainStatus=1", "InvocationID=abc", ""]))


def run(arguments: dict[str, Any] | list[str], path: Path, proc: str = "/nowhere") -> tuple[int, list[dict[str, Any]]]:
    """As the box runs it; by default nobody can be seen to listen."""
    changed = {"proc": ('Path("/proc")', f"Path({proc!r})"), "probe": ("POLL_S = 1.0", "POLL_S = 0.01")}
    environment = {"PATH": f"{path}:/usr/bin:/bin"}
    done = sent.run("probe", given=arguments, python=f"{path}/python3", changed=changed, environment=environment)
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_ready(server: Server, box: Path) -> None:
    code, events = run({"url": server.url, "model": "m", "unit": "u", "phases": ARGUMENTS.phases}, box)
    assert code == probe.READY
    assert [event.get("phase", event["event"]) for event in events] == ["import", "load", "answer", "ready"]
    assert server.asked == 1


@pytest.mark.pain("P51", "P65")
def test_thorough(server: Server, box: Path) -> None:
    arguments = {"url": server.url, "model": "m", "unit": "u", "thorough": True, "concurrency": 4}
    code, events = run(arguments, box)
    assert code == probe.READY
    assert [e["phase"] for e in events[:-1]] == ["import", "answer", "long prompt", "burst", "answer again"]
    assert server.asked == 1 + 1 + 8 + 1


GOOD = (200, reply("fine", -1.0))
FAULTS = [
    ([(200, reply(""))], "answered nothing"),
    ([(500, {"error": "boom"})], "a completion got HTTP 500: .*boom"),
    ([(200, {"object": "error"})], "not a chat completion"),
    ([(200, [])], "not a chat completion"),
    ([GOOD, (200, reply("!" * 9, *[-1.0] * 9, token="!"))], "with a long prompt: answered one token"),
    ([GOOD, GOOD, (503, {})], "8 of 8 requests failed, 4 at once; the first: a completion got HTTP 503"),
    ([GOOD] * 10 + [(200, reply(""))], "after 8 requests: answered nothing"),
]


@pytest.mark.parametrize(("answers", "cause"), FAULTS)
@pytest.mark.pain("P51", "P53", "P65")
def test_a_server_that_is_healthy_but_no_good(
    server: Server, box: Path, answers: list[tuple[int, Any]], cause: str
) -> None:
    server.answers = answers
    arguments = {"url": server.url, "model": "m", "unit": "u", "thorough": True, "concurrency": 4, "telling": ["Load"]}
    code, events = run(arguments, box)
    assert code == probe.NOT_READY
    assert events[-1]["telling"] == ["Load weight begin"]
    assert re.search(cause, events[-1]["cause"]), events[-1]
    assert events[-1]["log"][:2] == ["INFO: hello", "Load weight begin"]


def test_a_server_that_dies_over_a_request_is_looked_at_until_systemd_has_noticed(server: Server, box: Path) -> None:
    server.health, server.answers = [200, 503], [(500, {})]
    unit("activating", "auto-restart", "exit-code", box)
    earlier = f"sed 's/=activating/=active/; s/=auto.*/=running/' {box}/unit"
    late = f"echo x >>{box}/looks; test $(wc -l <{box}/looks) -gt 4 || {{ {earlier}; exit; }}"
    (box / "systemctl").write_text(f"#!/bin/sh\n{late}\ncat {box}/unit\n")
    code, events = run({"url": server.url, "model": "m", "unit": "u"}, box)
    assert code == probe.NOT_READY
    assert re.search("HTTP 500.*; the server ended and systemd is about to start it again", events[-1]["cause"])


def test_one_look_at_a_server_that_is_not_there(box: Path) -> None:
    code, events = run({"url": "http://127.0.0.1:9", "model": "m", "unit": "u", "timeout_s": 0}, box)
    assert (code, events[-1]["cause"]) == (1, "not ready after 0 s, in phase import: nothing listens")


def test_another_process_on_the_port_is_not_taken_for_the_unit(server: Server, box: Path) -> None:
    code, events = run({"url": server.url, "model": "m", "unit": "u.service"}, box, proc="/proc")
    assert code == probe.NOT_READY
    assert re.fullmatch(r"process \d+ .* listens on the port, not the unit", events[-1]["cause"])
    assert server.asked == 0


def test_a_failed_unit_ends_at_once(box: Path) -> None:
    unit("failed", "failed", "oom-kill", box)
    code, events = run({"url": "http://127.0.0.1:9", "model": "m", "unit": "u"}, box)
    assert code == probe.NOT_READY
    assert events[-1]["cause"] == "the unit failed: result oom-kill, exit status 1"


@pytest.mark.parametrize("broken", ["systemctl fails", "no such unit", "wrong arguments", "no object"])
def test_what_cannot_be_told(server: Server, box: Path, broken: str) -> None:
    arguments: dict[str, Any] = {"url": server.url, "model": "m", "unit": "u"}
    if broken == "systemctl fails":
        (box / "systemctl").write_text("#!/bin/sh\necho no bus >&2; exit 1\n")
    if broken == "no such unit":
        (box / "unit").write_text("LoadState=not-found\n")
    if broken == "wrong arguments":
        arguments["timeout"] = 1
    code, events = run([] if broken == "no object" else arguments, box)
    assert (code, events[-1]["event"]) == (probe.CANNOT_TELL, "cannot-tell")


def test_the_key_goes_into_the_header_only(server: Server, box: Path) -> None:
    (box / "key").write_text("sekret\n")
    code, events = run({"url": server.url, "model": "m", "unit": "u", "api_key_file": str(box / "key")}, box)
    assert code == probe.READY
    assert server.keys == ["Bearer sekret"]
    assert "sekret" not in json.dumps(events)
