"""The state of the step `base`: distribution, packages, time zone, owned files, kernel settings. One command."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts import files, packages
from gpubox.facts.answers import Fact, checked, script
from gpubox.facts.packages import Package
from gpubox.support.owned_file import Entry
from gpubox.support.reading import Asked

_SYSCTL = (
    'f=/proc/sys/$(echo "$k" | tr . /); '
    'if [ -r "$f" ]; then printf "%s\\t%s\\t%s\\n" "$k" "$(test -w "$f" && echo rw || echo ro)" "$(cat "$f")"; '
    'else printf "%s\\tabsent\\t\\n" "$k"; fi'
)


@dataclass(frozen=True)
class Sysctl:
    """One kernel setting as the running kernel has it."""

    access: str
    """`rw`, `ro` (a container may not set it) or `absent` (this kernel or namespace has it not)."""
    value: str


@dataclass(frozen=True)
class BaseState:
    """What `base` compares with."""

    distribution: str
    """As `debian12`, in the words of /etc/os-release."""
    packages: dict[str, Package]
    timezone: str
    """Target of /etc/localtime below /usr/share/zoneinfo; empty: none set."""
    files: dict[str, Entry]
    sysctls: dict[str, Sysctl]


class BaseFact(Fact[BaseState]):
    """BaseState for the given names, paths and settings."""

    @override
    def command(self, names: Sequence[str], paths: Sequence[str], sysctls: Sequence[str]) -> str:
        return script(
            {
                "distribution": StringCommand('. /etc/os-release; echo "$ID$VERSION_ID"'),
                "packages": packages.question(names),
                "timezone": StringCommand("readlink /etc/localtime || true"),
                "files": files.question(paths),
                "sysctls": StringCommand("for k in", *(QuoteString(key) for key in sysctls), "; do", _SYSCTL, "; done"),
            }
        )

    @override
    def process(self, output: list[str]) -> BaseState:
        found = checked(output)
        rows = (line.split("\t", 2) for line in found["sysctls"].lines if line)
        return BaseState(
            distribution="".join(found["distribution"].lines),
            packages=packages.parse(found["packages"].lines),
            timezone="".join(found["timezone"].lines).rpartition("zoneinfo/")[2],
            files=files.parse(found["files"].lines),
            sysctls=Asked(
                "kernel settings", {key: Sysctl(access, value.replace("\t", " ")) for key, access, value in rows}
            ),
        )
