"""Ask the model server over HTTP."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PAST_PROXIES = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A login's environment may name a proxy, which would answer for the server (sgl-project/sglang#9814)."""


class NoAnswer(Exception):  # noqa: N818 - says what happened
    """The server gave no usable answer; the text says what it did instead."""

    def __init__(self, said: str, status: int | None = None, refused: bool = False) -> None:
        super().__init__(said)
        self.status = status
        """Of an HTTP error; None: there was no reply."""
        self.refused = refused
        """Nothing listens there."""


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
    return _ask(_request(url, None, key), timeout_s)


def post(url: str, body: dict[str, Any], key: str | None = None, timeout_s: float = 120) -> Any:
    """The JSON that a POST returns. Error: NoAnswer."""
    return _ask(_request(url, body, key), timeout_s)


def bytes_within(url: str, body: dict[str, Any], key: str | None, seconds: float) -> int:
    """How many pieces of a streamed answer arrive before the server falls silent for `seconds`, at most 3."""
    pieces = 0
    try:
        with _PAST_PROXIES.open(_request(url, body, key), timeout=seconds) as reply:
            while pieces < 3 and (line := reply.readline()):
                pieces += line.startswith(b"data:")
    except (OSError, http.client.HTTPException):
        pass
    return pieces


def read_key(file: str | None) -> str | None:
    """The API key in a file that only root may read; None: there is no such file to read. Error: OSError."""
    return Path(file).read_text().strip() if file else None


def _request(url: str, body: dict[str, Any] | None, key: str | None) -> urllib.request.Request:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if body is None:
        return urllib.request.Request(url, headers=headers)  # noqa: S310 - the user's own URL
    headers["Content-Type"] = "application/json"
    return urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - as above


def _ask(request: urllib.request.Request, timeout_s: float) -> Any:
    try:
        with _PAST_PROXIES.open(request, timeout=timeout_s) as reply:
            text = reply.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace").strip()
        raise NoAnswer(f"HTTP {error.code}: {said}", error.code) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise NoAnswer(str(reason), refused=isinstance(reason, ConnectionRefusedError)) from error
    try:
        return json.loads(text)
    except ValueError:
        return text
