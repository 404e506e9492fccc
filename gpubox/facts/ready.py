"""Whether the model server answers, asked with a real completion. One command; needs the probe on the host."""

import json
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact

PROBE_PATH = "/var/lib/gpubox/bin/probe.py"


def probe(arguments: dict[str, Any]) -> StringCommand:
    """The command that runs the probe (gpubox/remote/probe.py) with these arguments; events come as JSON lines."""
    return StringCommand("printf %s", QuoteString(json.dumps(arguments)), "| python3", PROBE_PATH)


class ReadyFact(Fact[dict[str, Any]]):
    """The probe's last event after one look: `ready`, `failed` with its cause, `cannot-tell`, or `no-probe`."""

    @override
    def command(self, arguments: dict[str, Any]) -> StringCommand:
        return StringCommand(f"test ! -e {PROBE_PATH} || {{", probe({**arguments, "timeout_s": 0}), "; true; }")

    @override
    def process(self, output: list[str]) -> dict[str, Any]:
        events: list[dict[str, Any]] = [json.loads(line) for line in output if line.startswith("{")]
        return events[-1] if events else {"event": "no-probe"}
