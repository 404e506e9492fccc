"""Print the secrets of a running server, as JSON for whoever adopts it: they pass through a pipe, no command line.

One JSON object on stdin: `pid`, and `variable`, the name of the environment variable with the hub's token, or empty.
Prints `api-key` and `hub-token`, those that are there.
"""

from __future__ import annotations

import json
import sys

from gpubox.remote import proc, secrets


def main(words: list[str]) -> int:
    """Read which process, print what it has. It takes no words."""
    asked = json.loads(sys.stdin.read())
    process = proc.process(asked["pid"])
    found = {"api-key": api_key(proc.words(process)), "hub-token": ""}
    if asked["variable"]:
        found["hub-token"] = proc.variables(process).get(asked["variable"], "")
    print(json.dumps({kind: secret for kind, secret in found.items() if secret}))
    return 0


def api_key(argv: list[str]) -> str:
    """What the last --api-key gives, whose name may be shortened as argparse allows; empty: there is none."""
    key = ""
    for word, after in zip(argv, [*argv[1:], ""]):
        name, equals, value = word.partition("=")
        if name.startswith("--") and secrets.flag_meant(name) == "api-key":
            key = value if equals else after
    return key
