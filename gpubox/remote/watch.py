"""Ask the model server all along, on the box, and say for how long it gave no good answer. One file, standard library.

Runs until its stdin ends: `python3 -I -c SCRIPT`, on stdin one JSON line: the probe's arguments of each release that
may answer. At the end one JSON line comes out: `answers` and `failures` (numbers), and `downtime_s`, the longest time
from a last good answer before failures to the first one after them; null: no answer failed, or none came after.
"""

import json
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

PAUSE_S = 0.2
REQUEST_S = 10.0
_PAST_PROXIES = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A login's environment may name a proxy, which would answer for the server (sgl-project/sglang#9814)."""


def main() -> None:
    """Ask until stdin ends, then say."""
    releases = json.loads(sys.stdin.readline())
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    seen: list[tuple[float, bool]] = []
    while not ended.is_set():
        good = any(_answers(one) for one in releases)
        seen.append((time.monotonic(), good))
        ended.wait(PAUSE_S)
    print(json.dumps(summary(seen)), flush=True)


def summary(seen: list[tuple[float, bool]]) -> dict[str, Any]:
    """What the answers amount to. `seen`: time in seconds at which each ended, and whether it was good."""
    longest, last_good, failed = None, None, False
    for at_s, good in seen:
        if good and failed and last_good is not None:
            longest = max(longest or 0.0, round(at_s - last_good, 1))
        failed = not good
        last_good = at_s if good else last_good
    return {
        "answers": sum(good for _, good in seen),
        "failures": sum(not good for _, good in seen),
        "downtime_s": longest,
    }


def _answers(arguments: dict[str, Any]) -> bool:
    headers = {"Content-Type": "application/json"}
    body = {"model": arguments["model"], "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    try:
        if arguments.get("api_key_file"):
            headers["Authorization"] = f"Bearer {Path(arguments['api_key_file']).read_text().strip()}"
        url = f"{arguments['url']}/v1/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - our own server
        with _PAST_PROXIES.open(request, timeout=REQUEST_S) as reply:
            return bool(json.load(reply)["choices"])
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    main()
