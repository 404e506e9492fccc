"""CUDA toolkits, their source, the system's default, and what programs would pick up by accident. One command."""

import base64
from dataclasses import dataclass, field

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.cuda import packages as cuda
from gpubox.facts import files, packages
from gpubox.facts.answers import Answer, Fact, checked, script
from gpubox.facts.packages import Package
from gpubox.settings.host import Cuda
from gpubox.support.owned_file import Entry

LINK = "/usr/local/cuda"
_NVCC = 'echo "$v $(/usr/local/cuda-$v/bin/nvcc --version 2>/dev/null | grep -o "release [0-9.]*")"'
_HEADERS = (
    f'for h in {" ".join(cuda.JIT_HEADERS)}; do [ -e "/usr/local/cuda-$v/include/$h" ] || '
    '[ -e "/usr/local/cuda-$v/targets/x86_64-linux/include/$h" ] || echo "$v $h"; done'
)
_RUNTIMES = r"/sbin/ldconfig -p | sed -nE 's/^\s*(libcudart\.so\.[0-9]+) .*=> (.*)$/\1\t\2/p' | sort -u"
_LIBRARY_PATH = (
    r"grep -HsE '^[[:space:]]*(export[[:space:]]+)?LD_LIBRARY_PATH=' /etc/environment /etc/profile /etc/bash.bashrc "
    "/etc/profile.d/*.sh; [ $? -le 2 ]"
)


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
    keyring: bytes | None = None
    """Content of the keyring that signs the source; None: it is not there."""
    keyring_changed: bool = False
    """It is not as its package installed it."""
    runtimes: dict[str, str] = field(default_factory=dict)
    """libcudart.so.N that the loader finds for any program -> its path."""
    library_path: list[str] = field(default_factory=list)
    """`FILE:LINE` wherever a login is given an LD_LIBRARY_PATH."""
    lacking_headers: dict[str, list[str]] = field(default_factory=dict)
    """Toolkit -> headers that kernels compiled at run time need, and that it has not."""


class CudaFact(Fact[CudaState]):
    """CudaState for what the box's data wishes."""

    @override
    def command(self, wish: Cuda) -> str:
        asked = cuda.wishes(wish.toolkits, wish.parts, wish.exact)
        names = [cuda.KEYRING_PACKAGE, *(name.partition("=")[0] for name in asked)]
        versions = [QuoteString(version) for version in wish.toolkits]
        ring = QuoteString(cuda.KEYRING_FILE)
        return script(
            {
                "distribution": StringCommand('. /etc/os-release; echo "$ID$VERSION_ID"'),
                "packages": packages.question(names),
                "files": files.question([cuda.KEYRING_FILE, cuda.SOURCE_FILE, cuda.PINS, cuda.LOGIN_FILE]),
                "own_list": StringCommand("ls -d /etc/apt/sources.list.d/cuda-*-x86_64.list 2>/dev/null || true"),
                "keyring": StringCommand("[ ! -f", ring, "] || base64 -w0 <", ring),
                "verify": StringCommand(
                    "dpkg --verify", cuda.KEYRING_PACKAGE, "2>/dev/null | grep -F", ring, "|| true"
                ),
                "nvcc": StringCommand("for v in", *versions, "; do", _NVCC, "; done"),
                "headers": StringCommand("for v in", *versions, "; do", _HEADERS, "; done"),
                "alternatives": StringCommand("update-alternatives --query cuda 2>/dev/null"),
                "link": StringCommand("readlink -e", LINK, "|| true"),
                "runtimes": StringCommand(_RUNTIMES),
                "library_path": StringCommand(_LIBRARY_PATH),
            }
        )

    @override
    def process(self, output: list[str]) -> CudaState:
        found = checked(output, alternatives=2)
        lacking: dict[str, list[str]] = {}
        for version, _, header in (line.partition(" ") for line in found["headers"].lines if line):
            lacking.setdefault(version, []).append(header)
        keyring = "".join(found["keyring"].lines)
        entries = files.parse(found["files"].lines)
        entries |= {path: Entry("file") for path in found["own_list"].lines if path}
        return CudaState(
            distribution="".join(found["distribution"].lines),
            packages=packages.parse(found["packages"].lines),
            files=entries,
            nvcc=dict(_release(line) for line in found["nvcc"].lines if line),
            alternatives=_alternatives(found["alternatives"]),
            link="".join(found["link"].lines),
            keyring=base64.b64decode(keyring) if keyring else None,
            keyring_changed=any(found["verify"].lines),
            runtimes=dict(line.split("\t", 1) for line in found["runtimes"].lines if "\t" in line),
            library_path=[line for line in found["library_path"].lines if line],
            lacking_headers=lacking,
        )


def _release(line: str) -> tuple[str, str]:
    version, _, said = line.partition(" ")
    return version, said.removeprefix("release ")


def _alternatives(answer: Answer) -> Alternatives | None:
    if answer.rc == 2:
        return None
    fields = [line.split(": ", 1) for line in answer.lines if ": " in line]
    head = dict(reversed(fields))
    return Alternatives(
        manual=head["Status"] == "manual",
        value=head["Value"],
        choices=tuple(value for key, value in fields if key == "Alternative"),
    )
