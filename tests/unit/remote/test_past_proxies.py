"""Whatever asks the server goes past the proxy of the login that it runs in."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from typing_extensions import override

from gpubox.remote import probe, speed, watch
from gpubox.remote.bench import http
from gpubox.remote.probe import Arguments
from gpubox.support import paths

pytestmark = pytest.mark.pain("P95")

ANSWER = {"choices": [{"message": {"content": "hi"}}], "usage": {"completion_tokens": 8}, "data": [{"id": "m"}]}


class Server(BaseHTTPRequestHandler):
    """Answers everything."""

    @override
    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on this machine, and an environment whose proxy nobody answers for."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = HTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_all_of_them(url: str) -> None:
    asked: dict[str, Any] = {"url": url, "model": "m"}
    arguments = Arguments(url=url, model="m", unit="x.service")
    assert probe._health(arguments) == (200, "")
    assert probe._request(arguments, "/v1/models", None) == ANSWER
    assert watch._answers(asked)
    assert speed._timed(asked, 8) > 0
    assert http.get(f"{url}/v1/models") == ANSWER
    assert http.post(f"{url}/generate", {}) == ANSWER


@pytest.mark.parametrize(
    ("variables", "exceptions"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "a, b"}, "a,b,127.0.0.1"),
        ({"no_proxy": "x", "NO_PROXY": "y"}, "x,127.0.0.1"),
        ({"no_proxy": "127.0.0.1"}, None),
        ({"no_proxy": "*"}, None),
    ],
)
def test_a_client_of_sglang_gets_an_exception(variables: dict[str, str], exceptions: str | None) -> None:
    found = http.past_proxies("http://127.0.0.1:30000", variables)
    assert found == ({} if exceptions is None else {"no_proxy": exceptions, "NO_PROXY": exceptions})


def test_nothing_in_the_product_asks_by_the_environments_proxy() -> None:
    """urlopen takes the environment's proxies, and so does httpx without trust_env=False."""
    found = {
        str(file.relative_to(paths.root()))
        for file in paths.root().glob("gpubox/**/*.py")
        if re.search(r"urllib\.request\.urlopen|httpx\.(get|post|Client)\((?!.*trust_env=False)", file.read_text())
        and "lab" not in file.parts
    }
    assert found == set()
