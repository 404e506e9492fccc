"""Asking from the controller: the way, the answer, and what an error means."""

import http.server
import json
import socket
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typing_extensions import override

from gpubox.hosts import Box
from gpubox.server import outside
from gpubox.server.outside import Outside, Way, ask, causes, evidence, for_people, way_to
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings

MODELS = {"object": "list", "data": [{"id": "tiny"}]}


class Server(http.server.ThreadingHTTPServer):
    """Answers everything alike; keeps what it was asked."""

    status, body = 200, json.dumps(MODELS)
    asked: list[dict[str, str]]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    @override
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(dict(self.headers))
        content = self.server.body.encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        made.asked = []
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()


def box(host: str = "0.0.0.0", port: int = 30000, **connection: Any) -> Box:  # noqa: S104 - what a profile says
    wish = profile.load("tiny-cpu")
    wish = wish.model_copy(update={"flags": {**wish.flags, "host": host, "port": port}})
    given = {"ssh_hostname": "127.0.0.1", **connection}
    return Box("gpu01", BoxSettings(profile="tiny-cpu"), wish, stack.load(wish.stack), given)


def at(server: Server, **more: Any) -> Box:
    return box(port=int(server.server_address[1]), **more)


def test_it_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    found = ask(at(server))
    assert (found.kind, found.causes) == ("answers", ())
    assert found.said.endswith("from this machine")


def test_it_is_asked_with_the_key(server: Server, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sekret\n")
    key.chmod(0o600)
    given = at(server)
    found = ask(replace(given, settings=given.settings.model_copy(update={"api_key_file": str(key)})))
    assert (found.kind, server.asked[0]["Authorization"]) == ("answers", "Bearer sekret")
    assert "sekret" not in str(found)


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost", "::1"])
def test_what_listens_to_itself_alone_is_as_asked(host: str) -> None:
    assert ask(box(host)).kind == "as asked"


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (401, "{}", "another API key"),
        (502, "Bad Gateway", "a proxy or load balancer"),
        (200, "<html>", "another server answers"),
        (404, "{}", "another server answers"),
    ],
)
def test_an_answer_that_is_none(server: Server, status: int, body: str, cause: str) -> None:
    server.status, server.body = status, body
    found = ask(at(server))
    assert found.kind == "silent"
    assert f"HTTP {status}" in found.said
    assert cause in found.causes[0]


def test_a_port_that_nobody_answers_has_causes_and_rules() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = ask(box(port=port), lambda _: f"table inet f {{\n chain i {{\n  tcp dport {port} drop\n }}\n}}\n")
    assert found.kind == "silent"
    assert found.causes[0].startswith("a firewall that rejects")
    assert found.causes[-1] == f"a rule on the box: tcp dport {port} drop"
    assert for_people(found).startswith("the server answers on the box, not from here: http://127.0.0.1:")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TimeoutError("timed out"), "a firewall that drops what comes to port 30000"),
        (ConnectionRefusedError(111, "Connection refused"), "a firewall that rejects"),
        (OSError("channel 0: open failed: connect failed: Connection refused"), "a firewall that rejects"),
        (OSError(113, "No route to host"), "no route to 10.0.0.1 from here"),
        (OSError(101, "Network is unreachable"), "no route to 10.0.0.1 from here"),
        (socket.gaierror(-2, "Name or service not known"), "10.0.0.1 is no name that this machine knows"),
        (OSError("open failed: administratively prohibited: open failed"), "the sshd of the machine in between"),
    ],
)
def test_what_an_error_means(error: Exception, cause: str) -> None:
    assert causes(error, Way("10.0.0.1", 30000))[0].startswith(cause)


RULES = """table inet filter {
    chain input { type filter hook input priority filter; policy drop;
        tcp dport { 22, 30000 } ip saddr 10.0.0.0/8 accept
    }
}
-P INPUT DROP
Status: active
30000/tcp   ALLOW   10.0.0.0/8
"""


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (
            RULES,
            (
                "chain input { type filter hook input priority filter; policy drop;",
                "tcp dport { 22, 30000 } ip saddr 10.0.0.0/8 accept",
                "-P INPUT DROP",
                "Status: active",
                "30000/tcp ALLOW 10.0.0.0/8",
            ),
        ),
        ("-A INPUT -p tcp -j REJECT\n-A INPUT -p tcp --dport 300001 -j ACCEPT\n", ("-A INPUT -p tcp -j REJECT",)),
        ("", ()),
    ],
)
def test_rules_that_matter(rules: str, told: tuple[str, ...]) -> None:
    assert evidence(rules, 30000) == told


def ssh_that_knows(folder: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """An ssh in the PATH that says `told` to -G, and for -W connects to the target itself."""
    program = folder / "ssh"
    program.write_text(
        "#!/usr/bin/env python3\n"
        "import os, select, socket, sys\n"
        f"open({str(folder / 'said')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "if '-G' in sys.argv:\n"
        f"    print({told!r})\n"
        "    raise SystemExit\n"
        "host, _, port = sys.argv[sys.argv.index('-W') + 1].rpartition(':')\n"
        "end = socket.create_connection((host, int(port)))\n"
        "while True:\n"
        "    ready, _, _ = select.select([0, end], [], [])\n"
        "    if 0 in ready:\n"
        "        end.sendall(os.read(0, 65536))\n"
        "    if end in ready:\n"
        "        data = end.recv(65536)\n"
        "        if not data: break\n"
        "        os.write(1, data)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_through_a_jump_host(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh_that_knows(tmp_path, monkeypatch, "hostname 127.0.0.1\nproxyjump a@first,b@last")
    found = ask(at(server, ssh_hostname="alias"))
    assert (found.kind, found.said.partition(" ")[2]) == ("answers", "through a@first,b@last (ProxyJump)")
    assert f"-J a@first -W 127.0.0.1:{server.server_address[1]} -- b@last" in (tmp_path / "said").read_text()


@pytest.mark.parametrize(
    ("jump", "words"),
    [
        ("last", ["--", "last"]),
        ("a@b@last:2222", ["-p", "2222", "--", "a@b@last"]),
        ("one,two,last", ["-J", "one,two", "--", "last"]),
        ("[fe80::1]:22", ["-p", "22", "--", "fe80::1"]),
        ("fe80::1", ["--", "fe80::1"]),
    ],
)
def test_the_last_machine_of_a_jump(jump: str, words: list[str]) -> None:
    assert list(outside._to_the_last(jump))[-len(words) :] == words


def test_through_the_hypervisor_of_a_container(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh_that_knows(tmp_path, monkeypatch, "hostname pve01")
    given = at(server, ssh_hostname="pve01", container_name="101", ssh_user="root")
    found = ask(given, lambda text: "127.0.0.1 fe80::1" if "hostname" in text else "")
    assert (found.kind, found.said.partition(" ")[2]) == ("answers", "through the hypervisor pve01")
    assert ask(given).kind == "unknown"


@pytest.mark.parametrize(
    ("host", "told", "address"),
    [
        ("0.0.0.0", "hostname 10.0.0.7", "10.0.0.7"),  # noqa: S104 - what a profile says
        ("0.0.0.0", "hostname 10.0.0.7\nproxyjump none", "10.0.0.7"),  # noqa: S104 - what a profile says
        ("192.168.1.5", "hostname 10.0.0.7", "192.168.1.5"),
        ("0.0.0.0", "", "alias"),  # noqa: S104 - what a profile says
    ],
)
def test_where_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, told: str, address: str) -> None:
    ssh_that_knows(tmp_path, monkeypatch, told)
    assert way_to(box(host, ssh_hostname="alias"), None) == Way(address, 30000)


def test_a_machine_without_ssh_asks_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert way_to(box(), None).address == "127.0.0.1"


def test_the_words_name_every_cause() -> None:
    text = for_people(Outside("silent", "http://x:1: no answer within 10 s", ("one", "two")))
    assert text.splitlines()[1:] == ["  cause, perhaps: one", "  cause, perhaps: two"]


def test_ipv6_addresses_are_bracketed() -> None:
    assert outside._bracketed("fe80::1") == "[fe80::1]"
