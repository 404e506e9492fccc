"""Ask the model server from this machine, as its clients do: what answers on the box may not answer here.

Direct where ssh goes directly. Where ssh goes through another machine (a container that its hypervisor is asked for, a
ProxyJump), that machine opens the connection (`ssh -W`), because this one has no way of its own. No proxy is ever used.
"""

import http.client
import io
import json
import os
import re
import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal

from gpubox.hosts import Box
from gpubox.support import ssh
from gpubox.support.errors import GpuboxError

LIMIT_S = 10.0
"""How long an answer may take, in seconds: a list of models costs the server nothing."""
_LOOPBACK = {"", "127.0.0.1", "localhost", "::1"}
_WILDCARD = {"0.0.0.0", "::", "[::]"}  # noqa: S104 - what a profile may say, nothing listens here
EVIDENCE = """nft list ruleset 2>/dev/null; iptables -S 2>/dev/null; ip6tables -S 2>/dev/null
ufw status 2>/dev/null; firewall-cmd --list-all 2>/dev/null; true"""
"""Shell text that prints what rules of a firewall there are."""


@dataclass(frozen=True)
class Way:
    """Where the server is asked, and through whom."""

    address: str
    port: int
    through: tuple[str, ...] = ()
    """The words of ssh to the machine that opens the connection; empty: this one does."""
    named: str = "from this machine"
    """For people."""


@dataclass(frozen=True)
class Outside:
    """What came back."""

    kind: Literal["answers", "silent", "as asked", "unknown"]
    """`as asked`: the profile binds the server to the box itself, so there is nothing to ask from outside."""
    said: str
    """In words, with the address and the way."""
    causes: tuple[str, ...] = ()
    """Likely ones, the likeliest first."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer."""

    status: int
    text: str
    server: str = ""
    """Headers that a proxy or another server gives itself away by."""


def ask(box: Box, inside: Callable[[str], str] | None = None) -> Outside:
    """Ask for the list of models, with the API key.

    + inside: gives what shell text prints on the box; asked for firewall rules when there is no answer, and for the
      address of a container that its hypervisor is asked for
    """
    host = str(box.profile.flags.get("host", ""))
    if host in _LOOPBACK:
        said = f"the profile binds the server to {host or '127.0.0.1'}: nobody else is to reach it"
        return Outside("as asked", said)
    try:
        way = way_to(box, inside)
    except GpuboxError as error:
        return Outside("unknown", error.found)
    where = f"http://{_bracketed(way.address)}:{way.port} {way.named}"
    try:
        reply = _direct(way, box) if not way.through else _through(way, box)
    except (OSError, http.client.HTTPException, subprocess.TimeoutExpired) as error:
        return Outside("silent", f"{where}: {_words(error)}", (*causes(error, way), *_rules(inside, way.port)))
    if reply.status == http.client.OK and _is_list(reply.text):
        return Outside("answers", where)
    told = f"{where}: HTTP {reply.status}{reply.server}: {' '.join(reply.text.split())[:200]}"
    return Outside("silent", told, _about_reply(reply))


def way_to(box: Box, inside: Callable[[str], str] | None) -> Way:
    """The way to the server's port. Errors: the address of a container is not known."""
    host, port = str(box.profile.flags.get("host", "")), box.profile.port
    words = ssh.command(box.address, box.connection)
    known = _known_to_ssh(words)
    if "container_name" in box.connection:
        address = host if host not in _WILDCARD else _own_address(inside)
        return Way(address, port, tuple(words), f"through the hypervisor {box.address}")
    address = host if host not in _WILDCARD else known.get("hostname", box.address)
    jump = known.get("proxyjump", "")
    if jump and jump != "none":
        return Way(address, port, _to_the_last(jump), f"through {jump} (ProxyJump)")
    return Way(address, port)


def _to_the_last(jump: str) -> tuple[str, ...]:
    """The words of ssh to the last machine of a ProxyJump, through those before it."""
    before, _, last = jump.removeprefix("ssh://").rpartition(",")
    user, _, place = last.removeprefix("ssh://").rpartition("@")
    found = re.fullmatch(r"\[?([^\[\]]+?)\]?(?::(\d+))?", place) if place.count(":") < 2 or "[" in place else None
    host, known_port = (found[1], found[2]) if found else (place, None)
    words = ssh.command(host, {"ssh_user": user, "ssh_port": known_port})
    at = words.index("--")
    return (*words[:at], *(["-J", before] if before else []), *words[at:])


def causes(error: Exception, way: Way) -> tuple[str, ...]:
    """What an error of the connection means."""
    text = _words(error)
    if isinstance(error, ConnectionRefusedError) or "refused" in text:
        return (
            "a firewall that rejects, on the box or before it",
            f"{way.address} is another machine, or translated to one (NAT): compare with `hostname -I` on the box",
        )
    if isinstance(error, socket.gaierror):
        return (f"{way.address} is no name that this machine knows",)
    if "unreachable" in text or "No route" in text:
        return (f"no route to {way.address} from here: ip route get {way.address}", "a firewall that rejects")
    if "administratively prohibited" in text:
        return ("the sshd of the machine in between forwards nothing (AllowTcpForwarding)",)
    return (
        f"a firewall that drops what comes to port {way.port}, on the box, its hypervisor or between",
        "an allow list that does not have this machine",
    )


def evidence(rules: str, port: int) -> tuple[str, ...]:
    """The lines of a firewall's rules that speak of the port, or drop what nothing allows."""
    speaks = re.compile(rf"\b{port}\b|policy (drop|reject)|^-P INPUT (DROP|REJECT)|^Status: active")
    stops = re.compile(r"\b(drop|reject)\b", re.I)
    lines = [" ".join(line.split()) for line in rules.splitlines()]
    told = [line for line in lines if speaks.search(line)] or [line for line in lines if stops.search(line)]
    return tuple(dict.fromkeys(told))[:5]


def for_people(found: Outside) -> str:
    """What is said of a server that answers on its box and not here."""
    lines = [f"the server answers on the box, not from here: {found.said}"]
    return "\n".join([*lines, *(f"  cause, perhaps: {cause}" for cause in found.causes)])


def _direct(way: Way, box: Box) -> Reply:
    connection = http.client.HTTPConnection(way.address, way.port, timeout=LIMIT_S)
    try:
        connection.request("GET", "/v1/models", headers=box.authorization())
        return _reply(connection.getresponse())
    finally:
        connection.close()


def _through(way: Way, box: Box) -> Reply:
    """The bytes of one request and its answer, over the standard streams of `ssh -W`."""
    target = f"{_bracketed(way.address)}:{way.port}"
    headers = {"Host": target, "Connection": "close", **box.authorization()}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"GET /v1/models HTTP/1.1\r\n{head}\r\n".encode()
    at = way.through.index("--") if "--" in way.through else len(way.through) - 1
    program, *options = way.through[:at]
    # the first value of an option counts: at a lower level ssh does not say why the other end could not be reached
    words = [program, "-o", "LogLevel=INFO", *options, "-W", target, *way.through[at:]]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise OSError("no streams to ssh")
        try:
            process.stdin.write(request)
            process.stdin.flush()
            answer = _within(process.stdout)
        finally:
            process.kill()
        said = process.stderr.read().decode(errors="replace").strip()
    if not answer:
        raise OSError(said or f"no answer within {LIMIT_S:.0f} s")
    return _reply(_parsed(answer))


def _within(stream: IO[bytes]) -> bytes:
    """All that comes until the stream ends, or the time is over.

    The other direction stays open: a server takes its end for a client that is gone.
    """
    answer, until = b"", time.monotonic() + LIMIT_S
    while (left_s := until - time.monotonic()) > 0:
        if not select.select([stream], [], [], left_s)[0]:
            break
        block = os.read(stream.fileno(), 65536)
        if not block:
            break
        answer += block
    return answer


def _parsed(answer: bytes) -> http.client.HTTPResponse:
    class _Socket:
        def makefile(self, *_: Any, **__: Any) -> io.BytesIO:
            return io.BytesIO(answer)

    response = http.client.HTTPResponse(_Socket())  # type: ignore[arg-type] # all it asks of a socket is the file
    response.begin()
    return response


def _reply(response: http.client.HTTPResponse) -> Reply:
    names = [f"{name}: {value}" for name in ("Via", "Server") if (value := response.headers.get(name))]
    said = f" ({', '.join(names)})" if names else ""
    return Reply(response.status, response.read().decode(errors="replace"), said)


def _is_list(text: str) -> bool:
    try:
        return bool(json.loads(text)["data"])
    except (ValueError, LookupError, TypeError):
        return False


def _about_reply(reply: Reply) -> tuple[str, ...]:
    if reply.status in {401, 403}:
        return ("another API key than that of this inventory, or a proxy in between that asks for its own",)
    if reply.status in {407, 502, 503, 504} or "Via" in reply.server:
        return ("a proxy or load balancer answers in between",)
    return ("another server answers at this address",)


def _known_to_ssh(words: list[str]) -> Mapping[str, str]:
    """What ssh's own configuration says of the host: the real address, and through whom."""
    try:
        done = subprocess.run([words[0], "-G", *words[1:]], capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if name in {"hostname", "proxyjump"}}


def _own_address(inside: Callable[[str], str] | None) -> str:
    said = inside("hostname -I").split() if inside else []
    if not said:
        raise GpuboxError("the container's own address is not known", "what `hostname -I` prints in it")
    return said[0]


def _rules(inside: Callable[[str], str] | None, port: int) -> tuple[str, ...]:
    if inside is None:
        return ()
    try:
        found = evidence(inside(EVIDENCE), port)
    except GpuboxError:
        return ()
    return tuple(f"a rule on the box: {line}" for line in found)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
        return f"no answer within {LIMIT_S:.0f} s"
    return " ".join(str(error).split()) or type(error).__name__
