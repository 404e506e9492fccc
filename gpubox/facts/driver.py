"""The driver as a box sees it: kernel module, the libraries that programs get, packages, and what apt offers."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.driver import fabric
from gpubox.driver import packages as driver
from gpubox.driver.fabric import Fabric
from gpubox.facts import files
from gpubox.facts import packages as dpkg
from gpubox.facts.answers import Fact, checked, script
from gpubox.facts.apt import INSTALLED_ALONE
from gpubox.facts.packages import Package
from gpubox.hypervisor import limits
from gpubox.support.owned_file import Entry

_LIBRARIES = (
    "/sbin/ldconfig -p | grep x86-64 | grep -E '(" + "|".join(driver.LIBRARIES) + ") ' | sed 's/.*=> //' | sort -u | "
    'while read -r p; do printf "%s\\t%s\\n" "${p##*/}" "$(readlink -f "$p")"; done'
)
_INSTALLED = (
    "dpkg-query -W -f '${db:Status-Abbrev}${Package}\\n' "
    + " ".join(map(shlex.quote, driver.USERLAND))
    + " | sed -n 's/^.i //p'"
)
_MAJOR = r"sed -nE 's/^NVRM version:.*[[:space:]]([0-9]+)\.[0-9.]+[[:space:]].*/\1/p' /proc/driver/nvidia/version"
_CONTAINER = (
    "tr '\\0' '\\n' </proc/1/environ | sed -n 's/^container=//p'; cat /run/systemd/container 2>/dev/null || true"
)


@dataclass(frozen=True)
class DriverState:
    """What `driver` compares with."""

    distribution: str
    in_container: bool
    """The kernel is another machine's: nothing here can load a module."""
    module: str | None
    """Version of the loaded kernel module; None: no module is loaded, or this container does not see it."""
    libraries: dict[str, list[str]]
    """libcuda.so.1 and libnvidia-ml.so.1 -> versions of all files that the loader may take; `?`: unknown."""
    packages: dict[str, Package]
    """Every package of the names that a driver's userland or kernel modules have."""
    offers: dict[str, list[str]]
    """Name -> versions that apt knows, best first; of those asked for and of those installed."""
    files: dict[str, Entry]
    automatic: frozenset[str] = frozenset()
    """Packages that came because others need them; naming one to apt would make it somebody's wish."""
    fabric: Fabric = field(default_factory=Fabric)
    """NVSwitches, and what sets them up; in a container of its hypervisor's switches nothing is asked."""

    @property
    def locked(self) -> dict[str, Package]:
        """The installed packages that must have the module's version."""
        rows = self.packages.items()
        return {
            name: package for name, package in rows if package.installed and driver.is_locked(name, package.version)
        }


class DriverFact(Fact[DriverState]):
    """DriverState, with what apt offers of `names` ({major} stands for the module's major version)."""

    @override
    def command(self, names: Sequence[str]) -> str:
        asked = (QuoteString(name) for name in names)
        names_here = StringCommand("echo", *asked, '| sed "s/{major}/$m/g";', _INSTALLED)
        offers = StringCommand(
            "m=$(", _MAJOR, "2>/dev/null); apt-cache madison $(", names_here, ") 2>/dev/null || true"
        )
        return script(
            {
                "distribution": StringCommand('. /etc/os-release; echo "$ID$VERSION_ID"'),
                "container": StringCommand(_CONTAINER),
                "module": StringCommand("cat /proc/driver/nvidia/version 2>/dev/null || true"),
                "libraries": StringCommand(_LIBRARIES),
                "packages": dpkg.question([*driver.USERLAND, *driver.KERNEL_PACKAGES]),
                "offers": offers,
                "automatic": StringCommand(f"apt-mark {INSTALLED_ALONE} showauto 2>&1"),
                "fabric": StringCommand(f'[ -n "$({_CONTAINER})" ] || {{ {fabric.QUESTION}; }} || true'),
                "files": files.question([driver.PINS, driver.UNATTENDED, driver.SOURCE_FILE, *limits.FILES]),
            }
        )

    @override
    def process(self, output: list[str]) -> DriverState:
        found = checked(output)
        libraries: dict[str, list[str]] = {}
        for name, _, path in (line.partition("\t") for line in found["libraries"].lines if "\t" in line):
            libraries.setdefault(name, []).append(driver.library_version(path) or "?")
        offers: dict[str, list[str]] = {}
        for row in (line.split("|") for line in found["offers"].lines if line.count("|") == 2):
            offers.setdefault(row[0].strip(), []).append(row[1].strip())
        return DriverState(
            distribution="".join(found["distribution"].lines),
            in_container=any(line.strip() for line in found["container"].lines),
            module=driver.module_version("\n".join(found["module"].lines)),
            libraries={name: sorted(set(versions)) for name, versions in libraries.items()},
            packages=dpkg.parse(found["packages"].lines),
            offers={name: list(dict.fromkeys(versions)) for name, versions in offers.items()},
            files=files.parse(found["files"].lines),
            automatic=frozenset(found["automatic"].lines),
            fabric=fabric.parse("\n".join(found["fabric"].lines)),
        )
