"""Ask the server over HTTP."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

_PAST_PROXIES = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A login's environment may name a proxy, which would answer for the server (sgl-project/sglang#9814)."""


class NoAnswer(Exception):  # noqa: N818 - says what happened
    """The server gave no usable answer; the text says what it did instead."""


def past_proxies(url: str, variables: Mapping[str, str]) -> dict[str, str]:
    """What keeps a client in a child process, which heeds the environment's proxies, from one for this server."""
    host = urllib.parse.urlsplit(url).hostname or ""
    named = variables.get("no_proxy") or variables.get("NO_PROXY") or ""
    words = [word.strip() for word in named.split(",") if word.strip()]
    if "*" in words or host in words:
        return {}
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join([*words, host]))


def get(url: str, key: str | None = None, timeout_s: float = 10) -> Any:
    """The JSON (or, if it is none, the text) that a GET returns. Error: NoAnswer."""
    return _ask(urllib.request.Request(url, headers=_headers(key)), timeout_s)  # noqa: S310 - the user's own URL


def post(url: str, body: dict[str, Any], key: str | None = None, timeout_s: float = 120) -> Any:
    """The JSON that a POST returns. Error: NoAnswer."""
    headers = {"Content-Type": "application/json", **_headers(key)}
    return _ask(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout_s)  # noqa: S310 - as above


def bytes_within(url: str, body: dict[str, Any], key: str | None, seconds: float) -> int:
    """How many pieces of a streamed answer arrive before the server falls silent for `seconds`, at most 3."""
    headers = {"Content-Type": "application/json", **_headers(key)}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - as above
    pieces = 0
    try:
        with _PAST_PROXIES.open(request, timeout=seconds) as reply:
            while pieces < 3 and (line := reply.readline()):
                pieces += line.startswith(b"data:")
    except (OSError, http.client.HTTPException):
        pass
    return pieces


def _headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _ask(request: urllib.request.Request, timeout_s: float) -> Any:
    try:
        with _PAST_PROXIES.open(request, timeout=timeout_s) as reply:
            text = reply.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        raise NoAnswer(f"HTTP {error.code}: {error.read(300).decode(errors='replace').strip()}") from error
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(str(getattr(error, "reason", error))) from error
    try:
        return json.loads(text)
    except ValueError:
        return text
