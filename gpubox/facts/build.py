"""What a source build depends on: cores, memory within the container's own limit, compilers, Python, torch's CUDA."""

from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact, checked, script
from gpubox.remote import cgroup

WHEELS = "/var/lib/gpubox/wheels"
"""On a box: a folder for each wheel that was compiled, named by its key."""
_PYTHON = "import sys, sysconfig; print(sys.implementation.cache_tag, sys.version.split()[0], sysconfig.get_platform())"


@dataclass(frozen=True)
class BuildState:
    """What is there to build with."""

    cores: int
    """CPUs that may be used: affinity and the container's quota."""
    memory_bytes: int
    """Free within the container's own memory limit, and on the machine."""
    nvcc: str
    """The toolkit's own words, as `13.1, V13.1.115`; empty: it has no nvcc."""
    torch_cuda: str | None
    """CUDA that the venv's torch was built with; None: no torch, or one without CUDA."""
    compiler: str
    """First line of `g++ --version`; empty: none."""
    python: str
    libc: str
    wheels: dict[str, list[str]]
    """Key -> wheels compiled on this box before."""


class BuildFact(Fact[BuildState]):
    """BuildState for a venv and a toolkit."""

    @override
    def command(self, venv: str, home: str) -> str:
        python = QuoteString(f"{venv}/bin/python")
        torch = StringCommand(QuoteString(f"{venv}/lib"), "-path '*/site-packages/torch/version.py'")
        return script(
            {
                "cores": StringCommand(cgroup.AFFINITY_TEXT),
                "cpuset": StringCommand(cgroup.first(cgroup.CPUSET)),
                "quota": StringCommand(cgroup.QUOTA_TEXT),
                "limit": StringCommand(cgroup.first(cgroup.LIMIT)),
                "used": StringCommand(cgroup.first(cgroup.USED)),
                "stat": StringCommand(cgroup.first(cgroup.STAT)),
                "available": StringCommand("sed -n 's/^MemAvailable: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo"),
                "nvcc": StringCommand(QuoteString(f"{home}/bin/nvcc"), "--version 2>/dev/null | grep release || true"),
                "torch": StringCommand("find", torch, "-exec cat {} + 2>/dev/null || true"),
                "compiler": StringCommand("g++ --version 2>/dev/null | head -n1"),
                "python": StringCommand(python, "-I -c", QuoteString(_PYTHON), "2>/dev/null || true"),
                "libc": StringCommand("ldd --version | head -n1"),
                "wheels": StringCommand(f"ls -d {WHEELS}/*/*.whl 2>/dev/null || true"),
            }
        )

    @override
    def process(self, output: list[str]) -> BuildState:
        given = checked(output)
        found = {name: answer.lines for name, answer in given.items()}
        texts = {name: answer.text for name, answer in given.items()}
        wheels: dict[str, list[str]] = {}
        for path in filter(None, found["wheels"]):
            folder, _, name = path.rpartition("/")
            wheels.setdefault(folder.rpartition("/")[2], []).append(name)
        return BuildState(
            cores=cgroup.cores(texts["cores"], texts["cpuset"], texts["quota"]),
            memory_bytes=cgroup.free(
                texts["limit"], texts["stat"], texts["used"], int(texts["available"].split()[0]) << 10
            ),
            nvcc=" ".join(found["nvcc"]).partition("release ")[2].strip(),
            torch_cuda=torch_cuda(found["torch"]),
            compiler="".join(found["compiler"]),
            python="".join(found["python"]),
            libc="".join(found["libc"]),
            wheels=wheels,
        )


def torch_cuda(version_file: list[str]) -> str | None:
    """CUDA in torch/version.py, whose line is `cuda: Optional[str] = '13.0'`."""
    for line in version_file:
        name, _, value = line.partition("=")
        if name.partition(":")[0].strip() == "cuda":
            return value.strip().strip("'\"") if value.strip() != "None" else None
    return None
