"""Whether the model server answers, asked with a real completion. One command; needs Python 3 on the host."""

import json
from typing import Any

from pyinfra.api import StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact
from gpubox.support import payload


def probe(arguments: dict[str, Any]) -> StringCommand:
    """The command that runs the probe (gpubox/remote/probe.py) with these arguments; events come as JSON lines."""
    return StringCommand(payload.shell("probe", given=arguments))


class ReadyFact(Fact[dict[str, Any]]):
    """The probe's last event after one look: `ready`, `failed` with its cause, `cannot-tell`, or `no-probe`."""

    @override
    def command(self, arguments: dict[str, Any]) -> StringCommand:
        look = probe({**arguments, "timeout_s": 0})
        return StringCommand("if command -v python3 >/dev/null; then", look, "; true; fi")

    @override
    def process(self, output: list[str]) -> dict[str, Any]:
        events: list[dict[str, Any]] = [json.loads(line) for line in output if line.startswith("{")]
        return events[-1] if events else {"event": "no-probe"}
