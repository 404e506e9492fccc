"""The model server's unit: what systemd says, and what the running process really is. One command."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts import files, release
from gpubox.facts.answers import Fact, checked, script
from gpubox.facts.release import STAMP as STAMP
from gpubox.facts.release import Releases
from gpubox.support.owned_file import Entry
from gpubox.support.reading import Asked

_PROPERTIES = "LoadState,ActiveState,UnitFileState,NeedDaemonReload,DropInPaths"


@dataclass(frozen=True)
class ServiceState:
    """What `server` and `ready` compare with."""

    files: dict[str, Entry]
    properties: dict[str, str]
    """As `systemctl show` names them."""
    releases: Releases

    def serves(self, digest: str) -> bool:
        """Whether the release runs, and systemd would start the same one again, also after a reboot."""
        settled = self.properties["UnitFileState"] == "enabled" and self.properties["NeedDaemonReload"] == "no"
        return settled and self.releases.serves(digest)


class ServiceFact(Fact[ServiceState]):
    """ServiceState of a unit, with the given paths."""

    @override
    def command(self, unit: str, paths: Sequence[str], venv_link: str) -> str:
        arguments: dict[str, Any] = {"unit": unit, "venv_link": venv_link}
        return script(
            {
                "files": files.question(paths),
                "properties": StringCommand(f"systemctl show --property={_PROPERTIES}", QuoteString(unit)),
                "releases": release.look(arguments),
            }
        )

    @override
    def process(self, output: list[str]) -> ServiceState:
        found = checked(output)
        return ServiceState(
            files=files.parse(found["files"].lines),
            properties=Asked(
                "systemctl show", dict(line.split("=", 1) for line in found["properties"].lines if "=" in line)
            ),
            releases=release.parse("".join(found["releases"].lines)),
        )
