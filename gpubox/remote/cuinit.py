"""Start CUDA as a program does, up to three times, and print how each ended.

nvidia-smi may be fine where this fails (ollama/ollama#11593), or fail now and then where this does not (#17069 there).
Prints {"tries": [{"code": 0, "s": 0.4}]}: what cuInit gave, null where it ended otherwise, and the seconds it took.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

TRIES, LIMIT_S = 3, 60
ONE = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"


def main(words: list[str]) -> int:
    """Stop at the first that is good. Each is a process of its own: a failure sticks to a process."""
    tries: list[dict[str, float | int | None]] = []
    while len(tries) < TRIES and not (tries and tries[-1]["code"] == 0):
        tries.append(_once())
    print(json.dumps({"tries": tries}))
    return 0


def _once() -> dict[str, float | int | None]:
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, "-I", "-c", ONE], capture_output=True, timeout=LIMIT_S)
        code = int(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        code = None
    return {"code": code, "s": round(time.monotonic() - began, 1)}
