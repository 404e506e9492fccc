"""Ask the model server all along, on the box, and say for how long it gave no good answer.

Runs until its stdin ends; on stdin one JSON line: the probe's arguments of each release that
may answer. At the end one JSON line comes out: `answers` and `failures` (numbers), and `downtime_s`, the longest time
from a last good answer before failures to the first one after them; null: no answer failed, or none came after.
`first_s`: how long it took to the first good answer, where nothing answered at the beginning; `silent_s`: how long
there has been none at the end; null: it was not so.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from gpubox.remote import endpoint
from gpubox.remote.endpoint import NoAnswer

PAUSE_S = 0.2
REQUEST_S = 10.0


def main(words: list[str]) -> int:
    """Ask until stdin ends, then say. It takes no words."""
    releases = json.loads(sys.stdin.readline())
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    seen: list[tuple[float, bool]] = []
    while True:
        good = any(_answers(one) for one in releases)
        seen.append((time.monotonic(), good))
        if ended.wait(PAUSE_S):
            break
    print(json.dumps(summary(seen)), flush=True)
    return 0


def summary(seen: list[tuple[float, bool]]) -> dict[str, Any]:
    """What the answers amount to. `seen`: time in seconds at which each ended, and whether it was good."""
    longest, last_good, failed = None, None, False
    for at_s, good in seen:
        if good and failed and last_good is not None:
            longest = max(longest or 0.0, round(at_s - last_good, 1))
        failed = not good
        last_good = at_s if good else last_good
    good_ones = [at_s for at_s, good in seen if good]
    began_bad, ends_bad = bool(seen) and not seen[0][1], bool(seen) and not seen[-1][1]
    return {
        "answers": len(good_ones),
        "failures": len(seen) - len(good_ones),
        "downtime_s": longest,
        "first_s": round(good_ones[0] - seen[0][0], 1) if good_ones and began_bad else None,
        "silent_s": round(seen[-1][0] - good_ones[-1], 1) if good_ones and ends_bad else None,
    }


def _answers(arguments: dict[str, Any]) -> bool:
    body = {"model": arguments["model"], "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    url = f"{arguments['url']}/v1/chat/completions"
    try:
        key = endpoint.read_key(arguments.get("api_key_file"))
        return bool(endpoint.post(url, body, key, REQUEST_S)["choices"])
    except (NoAnswer, OSError, LookupError, TypeError):
        return False


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()
