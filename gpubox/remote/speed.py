"""Time two completions, a short and a longer one, and print the seconds between tokens. One file, standard library.

One JSON object on stdin: url, model, and api_key_file where the server asks for a key. Prints {"tpot_s": ...}.
"""

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

SHORT, LONG = 8, 72
_PAST_PROXIES = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A login's environment may name a proxy, which would answer for the server (sgl-project/sglang#9814)."""


def main() -> int:
    """Ask both; the difference leaves out the prompt."""
    asked: dict[str, Any] = json.loads(sys.stdin.read())
    _timed(asked, SHORT)
    short, long = _timed(asked, SHORT), _timed(asked, LONG)
    print(json.dumps({"tpot_s": (long - short) / (LONG - SHORT)}))
    return 0


def _timed(asked: dict[str, Any], tokens: int) -> float:
    headers = {"Content-Type": "application/json"}
    if asked.get("api_key_file"):
        headers["Authorization"] = f"Bearer {Path(asked['api_key_file']).read_text().strip()}"
    body = {"model": asked["model"], "prompt": "The sea is", "max_tokens": tokens, "ignore_eos": True, "temperature": 0}
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{asked['url']}/v1/completions", data, headers)  # noqa: S310 - our own server
    began = time.monotonic()
    with _PAST_PROXIES.open(request, timeout=120) as reply:
        used = json.load(reply)["usage"]["completion_tokens"]
    if used != tokens:
        raise ValueError(f"{used} tokens, not {tokens}")
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
