"""What a source build depends on: cores, memory within the container's own limit, compilers, Python, torch's CUDA."""

from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact, checked, script
from gpubox.support.reading import reader

WHEELS = "/var/lib/gpubox/wheels"
"""On a box: a folder for each wheel that was compiled, named by its key."""
_UNLIMITED = 1 << 60

# cgroup v2, then v1; inside a container's own cgroup namespace its limits stand at the root of the tree.
_LIMIT = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || true"
_USED = "cat /sys/fs/cgroup/memory.current /sys/fs/cgroup/memory/memory.usage_in_bytes 2>/dev/null || true"
_CACHED = (
    "sed -nE 's/^(total_)?inactive_file ([0-9]+)/\\2/p' /sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory/memory.stat "
    "2>/dev/null | tail -n1"
)
_QUOTA = (
    "cat /sys/fs/cgroup/cpu.max 2>/dev/null || "
    "echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us 2>/dev/null)"
)
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
                "cores": StringCommand("nproc"),
                "quota": StringCommand(_QUOTA),
                "limit": StringCommand(_LIMIT),
                "used": StringCommand(_USED),
                "cached": StringCommand(_CACHED),
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
        found = {name: answer.lines for name, answer in checked(output).items()}
        wheels: dict[str, list[str]] = {}
        for path in filter(None, found["wheels"]):
            folder, _, name = path.rpartition("/")
            wheels.setdefault(folder.rpartition("/")[2], []).append(name)
        return BuildState(
            cores=cores(int(found["cores"][0]), found["quota"]),
            memory_bytes=memory(found["limit"], found["used"], found["cached"], found["available"]),
            nvcc=" ".join(found["nvcc"]).partition("release ")[2].strip(),
            torch_cuda=torch_cuda(found["torch"]),
            compiler="".join(found["compiler"]),
            python="".join(found["python"]),
            libc="".join(found["libc"]),
            wheels=wheels,
        )


@reader("the quota of CPU")
def cores(usable: int, quota: list[str]) -> int:
    """CPUs by affinity, cut by a quota as `200000 100000` (microseconds of each period); `max` and -1 are none."""
    words = " ".join(quota).split()
    if len(words) != 2 or not words[0].isdigit():
        return usable
    return max(1, min(usable, int(words[0]) // int(words[1])))


@reader("limits of memory")
def memory(limit: list[str], used: list[str], cached: list[str], available_kib: list[str]) -> int:
    """Free bytes: what the container's limit leaves, and never more than the machine has.

    + limit, used: of the container's cgroup, v2 before v1; `max` is none
    + cached: bytes that it holds only as file cache
    + available_kib: MemAvailable of the machine
    """
    free = int(available_kib[0]) << 10
    words = [word for word in limit if word]
    if not words or words[0] == "max" or int(words[0]) >= _UNLIMITED:
        return free
    held = int(next((word for word in used if word), "0")) - int(next((word for word in cached if word), "0"))
    return max(0, min(free, int(words[0]) - max(0, held)))


def torch_cuda(version_file: list[str]) -> str | None:
    """CUDA in torch/version.py, whose line is `cuda: Optional[str] = '13.0'`."""
    for line in version_file:
        name, _, value = line.partition("=")
        if name.partition(":")[0].strip() == "cuda":
            return value.strip().strip("'\"") if value.strip() != "None" else None
    return None
