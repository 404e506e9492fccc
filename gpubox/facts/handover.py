"""The server that somebody started by hand with the very flags that the unit is to have. One command."""

import json
from dataclasses import dataclass

from pyinfra.api import StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact
from gpubox.support import payload


@dataclass(frozen=True)
class Running:
    """A server outside of the unit."""

    pids: tuple[int, ...] = ()
    """It, and all that it started; empty: there is none."""
    unit: str = ""
    """The systemd service that holds it; empty: a login's."""


class HandoverFact(Fact[Running]):
    """Running, for the flags of the wished server.

    + flags: the words after the launcher, as the unit has them
    + unit: as `sglang.service`: what it holds is not meant
    """

    @override
    def command(self, flags: list[str], unit: str) -> StringCommand:
        look = command("look", flags, unit)
        return StringCommand("if command -v python3 >/dev/null; then", look, "; else echo '{}'; fi")

    @override
    def process(self, output: list[str]) -> Running:
        found = json.loads(output[-1])
        return Running(tuple(found.get("pids", ())), found.get("unit", ""))


def command(action: str, flags: list[str], unit: str, venv_link: str = "") -> StringCommand:
    """The shell command that does `action` of gpubox.remote.handover; nothing is left on the box."""
    given = {"flags": flags, "unit": unit, "venv_link": venv_link}
    return StringCommand(payload.shell("handover", action, given=given))
