"""Time two completions, a short and a longer one, and print the seconds between tokens.

One JSON object on stdin: url, model, and api_key_file where the server asks for a key. Prints {"tpot_s": ...}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from gpubox.remote import endpoint

SHORT, LONG = 8, 72


def main(words: list[str]) -> int:
    """Ask both; the difference leaves out the prompt. It takes no words."""
    asked: dict[str, Any] = json.loads(sys.stdin.read())
    _timed(asked, SHORT)
    short, long = _timed(asked, SHORT), _timed(asked, LONG)
    print(json.dumps({"tpot_s": (long - short) / (LONG - SHORT)}))
    return 0


def _timed(asked: dict[str, Any], tokens: int) -> float:
    key = endpoint.read_key(asked.get("api_key_file"))
    body = {"model": asked["model"], "prompt": "The sea is", "max_tokens": tokens, "ignore_eos": True, "temperature": 0}
    began = time.monotonic()
    used = endpoint.post(f"{asked['url']}/v1/completions", body, key)["usage"]["completion_tokens"]
    if used != tokens:
        raise ValueError(f"{used} tokens, not {tokens}")
    return time.monotonic() - began
