"""Every program that runs on a box, by its real entry, under the oldest and the newest Python of a box."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from tests.unit import sent
from tests.unit.test_probe import Server, reply


@pytest.fixture
def asked() -> Iterator[tuple[Server, dict[str, str]]]:
    """A server, and what a program must know to ask it."""
    with Server() as made:
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made, {"url": made.url, "model": "m"}
        made.shutdown()


def printed(program: str, *words: str, python: str, given: object) -> Any:
    done = sent.run(program, *words, given=given, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_watch_counts_until_its_stdin_ends(remote_python: str, asked: tuple[Server, dict[str, str]]) -> None:
    server, arguments = asked
    server.answers = [(200, reply("fine", -1.0))]
    seen = printed("watch", python=remote_python, given=[arguments])
    assert (seen["failures"], seen["downtime_s"]) == (0, None)
    assert seen["answers"] == server.asked


@pytest.mark.parametrize("answer", [(500, {}), (200, "no JSON object"), (200, {"choices": []})])
def test_watch_takes_no_bad_answer_for_a_good_one(
    remote_python: str, asked: tuple[Server, dict[str, str]], answer: tuple[int, Any]
) -> None:
    server, arguments = asked
    server.answers = [answer]
    seen = printed("watch", python=remote_python, given=[arguments])
    assert seen["answers"] == 0 < seen["failures"]


@pytest.mark.pain("P95")
def test_a_proxy_of_the_login_is_not_asked(
    asked: tuple[Server, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert printed("watch", python=sys.executable, given=[asked[1]])["failures"] == 0


def test_speed(remote_python: str, asked: tuple[Server, dict[str, str]]) -> None:
    server, arguments = asked
    server.answers = [(200, {"usage": {"completion_tokens": tokens}}) for tokens in (8, 8, 72)]
    assert isinstance(printed("speed", python=remote_python, given=arguments)["tpot_s"], float)


def test_servers_and_handover_find_nothing_here(remote_python: str) -> None:
    assert isinstance(printed("servers", python=remote_python, given={}), list)
    given = {"flags": ["--model-path", "/no/such"], "unit": "sglang.service", "venv_link": ""}
    assert printed("handover", "look", python=remote_python, given=given) == {"pids": [], "unit": ""}
    assert printed("handover", "end", python=remote_python, given=given) == {"pids": [], "unit": ""}


def test_cuinit_tells_how_each_try_ended(remote_python: str) -> None:
    tries = printed("cuinit", python=remote_python, given={})["tries"]
    assert 1 <= len(tries) <= 3


@pytest.mark.parametrize(
    ("words", "variable", "found"),
    [
        (["--api-key", "k1", "--api-key=k2"], "HF_TOKEN", {"api-key": "k2", "hub-token": "hf_x"}),
        (["--api-k", "k1"], "", {"api-key": "k1"}),
        (["--ap", "k1"], "", {"api-key": "k1"}),
        (["--a", "k1"], "", {}),
        (["--api-key"], "OTHER", {}),
    ],
)
def test_the_secrets_of_a_server(words: list[str], variable: str, found: dict[str, str], remote_python: str) -> None:
    program = "print(flush=True); input()"
    environment = {**os.environ, "HF_TOKEN": "hf_x"}
    command = [sys.executable, "-c", program, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout
        server.stdout.readline()  # it has replaced the fork of this process
        given = {"pid": server.pid, "variable": variable}
        assert printed("server_secrets", python=remote_python, given=given) == found
        server.communicate("\n")
