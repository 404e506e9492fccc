"""What apt and dpkg are like before anything is asked of them. One command, and no lock is taken."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Answer, Fact, checked, script

LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
"""Who locks one has it open, and apt has none open without locking it. The files themselves stay, and mean nothing."""

HOLDERS = (
    "for f in "
    + " ".join(LOCKS)
    + "; do find /proc/[0-9]*/fd -lname $f 2>/dev/null; done | cut -d/ -f3 | sort -un | "
    + "while read -r p; do printf '%s\\t%s\\n' $p \"$(tr '\\0' ' ' </proc/$p/cmdline 2>/dev/null)\"; done"
)
"""Shell: a line for each process that holds one of them: its number, a tab, its command line."""

INSTALLED_ALONE = (
    "-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null "
    "-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
)
"""Options of apt for a question about installed packages alone: 0.02 s. Against all that the sources offer, it matches
every pin's patterns with every package name first: 1.2 s of CPU (measured, Debian 12 with its whole archive)."""

_SOURCES = (
    "for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do "
    '[ ! -f "$f" ] || printf "%s\\t%s\\n" "$(base64 -w0 <"$f")" "$f"; done'
)
_UNSETTLED = (
    "dpkg-query -W -f '${db:Status-Abbrev}\\t${Package}\\n' | grep -E '^(.[HUFWt]|..R)'; [ $? -le 1 ] || exit 1"
)
_UNMET = f"LC_ALL=C apt-get check -q -o Debug::NoLocking=1 {INSTALLED_ALONE} 2>&1 || true"


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock of apt or dpkg."""

    pid: int
    command: str


@dataclass(frozen=True)
class AptState:
    """What the step `apt` compares with."""

    distribution: str
    """As `debian12`, in the words of /etc/os-release."""
    sources: dict[str, str]
    """Path -> text of every file that apt reads sources from."""
    unsettled: dict[str, str]
    """Package -> dpkg's letters, of those that are neither installed nor removed: `iU`, `iF`, `iHR`, ..."""
    interrupted: bool
    """dpkg ended in the middle of writing its state."""
    unmet: bool
    """Installed packages lack others that they need."""
    holders: list[Holder]
    keyrings: dict[str, bytes]
    """Path -> content of the keyrings asked for; one that is not there is not in it."""


class AptFact(Fact[AptState]):
    """AptState, with the content of the given keyrings."""

    @override
    def command(self, keyrings: Sequence[str]) -> str:
        paths = (QuoteString(path) for path in keyrings)
        read = '; do [ ! -f "$f" ] || printf "%s\\t%s\\n" "$(base64 -w0 <"$f")" "$f"; done'
        return script(
            {
                "distribution": StringCommand('. /etc/os-release; echo "$ID$VERSION_ID"'),
                "sources": StringCommand(_SOURCES),
                "unsettled": StringCommand(_UNSETTLED),
                "interrupted": StringCommand("ls /var/lib/dpkg/updates 2>/dev/null | grep -c '^[0-9]' || true"),
                "unmet": StringCommand(_UNMET),
                "holders": StringCommand(HOLDERS),
                "keyrings": StringCommand("for f in", *paths, read),
            }
        )

    @override
    def process(self, output: list[str]) -> AptState:
        found = checked(output)
        rows = (line.split("\t") for line in found["unsettled"].lines if "\t" in line)
        holders = (line.partition("\t") for line in found["holders"].lines if "\t" in line)
        return AptState(
            distribution="".join(found["distribution"].lines),
            sources={path: content.decode(errors="replace") for path, content in _contents(found["sources"])},
            unsettled={name: letters.rstrip() for letters, name in rows},
            interrupted="".join(found["interrupted"].lines) not in {"", "0"},
            unmet=any("unmet dependencies" in line.lower() for line in found["unmet"].lines),
            holders=[Holder(int(pid), command.strip()) for pid, _, command in holders],
            keyrings=dict(_contents(found["keyrings"])),
        )


def _contents(answer: Answer) -> list[tuple[str, bytes]]:
    rows = (line.split("\t", 1) for line in answer.lines if "\t" in line)
    return [(path, base64.b64decode(content)) for content, path in rows]


class Carried(Fact[frozenset[str]]):
    """Those of the given packages that a source carries, whether or not a pin keeps them away."""

    @override
    def command(self, names: Sequence[str]) -> StringCommand:
        return StringCommand("apt-cache madison", *(QuoteString(name) for name in names), "2>/dev/null || true")

    @override
    def process(self, output: list[str]) -> frozenset[str]:
        return frozenset(line.partition("|")[0].strip() for line in output if "|" in line)


class Simulation(Fact[str]):
    """What `apt-get --simulate install` prints for the given packages; nothing is changed and no lock is taken."""

    @override
    def command(self, names: Sequence[str], options: Sequence[str] = ()) -> StringCommand:
        words = (QuoteString(word) for word in (*options, *names))
        return StringCommand("LC_ALL=C apt-get -s -q install --no-install-recommends", *words, "2>&1 || true")

    @override
    def process(self, output: list[str]) -> str:
        return "\n".join(output)
