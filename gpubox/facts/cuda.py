"""CUDA toolkits, their source, and the system's default. One command."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from gpubox import cuda
from gpubox.facts import files, packages, sections
from gpubox.facts.files import Entry
from gpubox.facts.packages import Package

LINK = "/usr/local/cuda"
_NVCC = 'echo "$v $(/usr/local/cuda-$v/bin/nvcc --version 2>/dev/null | grep -o "release [0-9.]*")"'


@dataclass(frozen=True)
class Alternatives:
    """The link group `cuda` of update-alternatives."""

    manual: bool
    """Set by a person or by gpubox; automatic: the highest priority wins at every package operation (P20)."""
    value: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class CudaState:
    """What `cuda` compares with."""

    distribution: str
    packages: dict[str, Package]
    files: dict[str, Entry]
    nvcc: dict[str, str]
    """Toolkit -> the release that its nvcc says it is, as `12.8`; absent or broken: empty."""
    alternatives: Alternatives | None
    """None: there is no such group."""
    link: str
    """Where /usr/local/cuda leads in the end; empty: nowhere."""


class CudaFact(FactBase[CudaState]):
    """CudaState for the given toolkits."""

    @override
    def command(self, toolkits: Sequence[str]) -> StringCommand:
        names = [cuda.KEYRING_PACKAGE, *(cuda.toolkit_package(version) for version in toolkits)]
        return sections.script(
            {
                "distribution": StringCommand('. /etc/os-release; echo "$ID$VERSION_ID"'),
                "packages": packages.section(names),
                "files": files.section([cuda.KEYRING_FILE, cuda.SOURCE_FILE]),
                "own_list": StringCommand("ls -d /etc/apt/sources.list.d/cuda-*-x86_64.list 2>/dev/null || true"),
                "nvcc": StringCommand("for v in", *(QuoteString(v) for v in toolkits), "; do", _NVCC, "; done"),
                "alternatives": StringCommand("update-alternatives --query cuda 2>/dev/null"),
                "link": StringCommand("readlink -e", LINK, "|| true"),
            }
        )

    @override
    def process(self, output: list[str]) -> CudaState:
        found = sections.split(output, alternatives=2)
        entries = files.parse(found["files"].lines)
        entries |= {path: Entry("file") for path in found["own_list"].lines if path}
        return CudaState(
            distribution="".join(found["distribution"].lines),
            packages=packages.parse(found["packages"].lines),
            files=entries,
            nvcc=dict(_release(line) for line in found["nvcc"].lines if line),
            alternatives=_alternatives(found["alternatives"]),
            link="".join(found["link"].lines),
        )


def _release(line: str) -> tuple[str, str]:
    version, _, said = line.partition(" ")
    return version, said.removeprefix("release ")


def _alternatives(section: sections.Section) -> Alternatives | None:
    if section.code == 2:
        return None
    fields = [line.split(": ", 1) for line in section.lines if ": " in line]
    head = dict(reversed(fields))
    return Alternatives(
        manual=head["Status"] == "manual",
        value=head["Value"],
        choices=tuple(value for key, value in fields if key == "Alternative"),
    )
