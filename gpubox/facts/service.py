"""The model server's unit: what systemd says, and what the running process really is. One command."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts import files, sections
from gpubox.facts.files import Entry

_PROPERTIES = "LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,MainPID,NRestarts,Result"
STAMP = "GPUBOX_RELEASE"
"""Environment variable of the service that names what it was started from."""


@dataclass(frozen=True)
class ServiceState:
    """What `server` compares with."""

    files: dict[str, Entry]
    properties: dict[str, str]
    """As `systemctl show` names them."""
    argv: list[str]
    """/proc/PID/cmdline of the main process; empty: none runs."""
    release: str
    """The STAMP in the main process's environment; empty: none."""

    @property
    def running(self) -> bool:
        """Active with a main process."""
        return self.properties["ActiveState"] == "active" and bool(self.argv)


class ServiceFact(FactBase[ServiceState]):
    """ServiceState of a unit, with the given paths."""

    @override
    def command(self, unit: str, paths: Sequence[str]) -> StringCommand:
        name = QuoteString(unit)
        pid = StringCommand("p=$(systemctl show --value --property=MainPID", name, '); test "${p:-0}" = 0 ||')
        stamp = f"{{ tr '\\0' '\\n' <\"/proc/$p/environ\" | sed -n 's/^{STAMP}=//p'; }}"
        return sections.script(
            {
                "files": files.section(paths),
                "properties": StringCommand(f"systemctl show --property={_PROPERTIES}", name),
                "argv": StringCommand(pid, 'base64 -w0 "/proc/$p/cmdline"'),
                "release": StringCommand(pid, stamp),
            }
        )

    @override
    def process(self, output: list[str]) -> ServiceState:
        found = sections.split(output)
        words = base64.b64decode("".join(found["argv"].lines)).split(b"\0")[:-1]
        return ServiceState(
            files=files.parse(found["files"].lines),
            properties=dict(line.split("=", 1) for line in found["properties"].lines if "=" in line),
            argv=[word.decode(errors="replace") for word in words],
            release="".join(found["release"].lines),
        )
