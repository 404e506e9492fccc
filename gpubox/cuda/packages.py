"""What NVIDIA's CUDA packages are called and where they come from."""

import re
from collections.abc import Mapping, Sequence

from gpubox.support.errors import GpuboxError
from gpubox.support.versions import at_least

KEYRING_PACKAGE = "cuda-keyring"
KEYRING_DEB = "cuda-keyring_1.1-1_all.deb"
KEYRING_FILE = "/usr/share/keyrings/cuda-archive-keyring.gpg"
SOURCE_FILE = "/etc/apt/sources.list.d/gpubox-cuda.sources"
PINS = "/etc/apt/preferences.d/00-gpubox-cuda"
LOGIN_FILE = "/etc/profile.d/gpubox-cuda.sh"
LOGIN_TEXT = """# Written by gpubox (cuda): nvcc of the default toolkit. No LD_LIBRARY_PATH: it would mix them.
PATH=/usr/local/cuda/bin:$PATH
"""
JIT_HEADERS = {"cuda_runtime.h": "cuda-cudart-dev", "curand_kernel.h": "libcurand-dev"}
"""What kernels compiled at run time include -> the package that brings it, without its -X-Y."""

_OWN_LIST = re.compile(r"/etc/apt/sources\.list\.d/cuda-[a-z]+\d+-x86_64\.list")

NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/{distribution}/x86_64/"
KEYRING_SHA256 = {
    "debian12": "e7f219eab6fe4819cdb5c15b98233dc3420302d9c00883219cd3d896857cf48d",
    "debian13": "dd28f1f6ba0038180d6b23f846cefca1e3de4c9327751665241370bacea452a1",
    "ubuntu2204": "d93190d50b98ad4699ff40f4f7af50f16a76dac3bb8da1eaaf366d47898ff8df",
    "ubuntu2404": "d2a6b11c096396d868758b86dab1823b25e14d70333f1dfa74da5ddaf6a06dba",
}
"""SHA-256 of cuda-keyring_1.1-1_all.deb below each distribution's repository, as public installers pin it."""


def toolkit_package(version: str) -> str:
    """`12.8` -> `cuda-toolkit-12-8`: the toolkit alone; `cuda` and `cuda-drivers` would pull kernel drivers (P23)."""
    return f"cuda-toolkit-{version.replace('.', '-')}"


def packages(version: str, parts: Mapping[str, Sequence[str]]) -> list[str]:
    """The packages of a toolkit: all of it, or the parts chosen for it.

    + parts: toolkit -> parts, as `nvcc` (cuda-nvcc-X-Y) or `libcurand-dev` (libcurand-dev-X-Y)
    """
    dashed = version.replace(".", "-")
    if version not in parts:
        return [toolkit_package(version)]
    return [f"{part if part.startswith('lib') else f'cuda-{part}'}-{dashed}" for part in parts[version]]


def wishes(toolkits: Sequence[str], parts: Mapping[str, Sequence[str]], exact: Mapping[str, str]) -> list[str]:
    """What apt is asked for: `name` or `name=version`.

    + exact: package -> version; one of no chosen toolkit is asked for too
    """
    names = [name for version in toolkits for name in packages(version, parts)]
    return [f"{name}={exact[name]}" if name in exact else name for name in dict.fromkeys([*names, *exact])]


def has_compiler(version: str, parts: Mapping[str, Sequence[str]]) -> bool:
    """Whether nvcc is part of what is chosen of a toolkit."""
    return version not in parts or "nvcc" in parts[version]


def pins(exact: Mapping[str, str]) -> str:
    """The preferences that keep packages at exact versions; empty: none is exact."""
    records = (f"Package: {name}\nPin: version {version}\nPin-Priority: 1001\n" for name, version in exact.items())
    return "# Written by gpubox (cuda.exact).\n" + "\n".join(records) if exact else ""


def not_carried(distribution: str, toolkits: Sequence[str], first: Mapping[str, str]) -> GpuboxError | None:
    """The error for toolkits that are older than NVIDIA's repository for a distribution; None: apt will know.

    + first: repository's folder name -> its oldest toolkit, as the catalogue's matrix has it
    """
    name = distribution_name(distribution)
    lacking = [version for version in toolkits if name in first and not at_least(version, first[name])]
    if not lacking:
        return None
    elsewhere = sorted(other for other, oldest in first.items() if all(at_least(v, oldest) for v in toolkits))
    return GpuboxError(
        f"NVIDIA's repository for {name} has no toolkit {', '.join(lacking)}",
        f"toolkit {first[name]} or newer",
        f"other cuda.toolkits; or a mirror or local repository that has them (cuda.source.uri, also file:///...); or a "
        f"container of {' or '.join(elsewhere) or 'another distribution'}",
    )


def nvcc_package(version: str) -> str:
    """`12.8` -> `cuda-nvcc-12-8`, the part of the toolkit that holds the compiler."""
    return f"cuda-nvcc-{version.replace('.', '-')}"


def home(version: str) -> str:
    """`12.8` -> `/usr/local/cuda-12.8`, where NVIDIA's packages install a toolkit."""
    return f"/usr/local/cuda-{version}"


def distribution_name(distribution: str) -> str:
    """os-release's ID and VERSION_ID -> the repository's folder: `debian12`, `ubuntu24.04` -> `ubuntu2404`."""
    return distribution.replace(".", "")


def repository(uri: str | None, distribution: str) -> str:
    """The repository's URL for a box. Error: a distribution that NVIDIA's list here does not have, and no `uri`."""
    name = distribution_name(distribution)
    if uri is not None:
        return uri if uri.endswith("/") else f"{uri}/"
    if name not in KEYRING_SHA256:
        raise GpuboxError(
            f"no CUDA repository is known for {distribution}",
            f"one of: {', '.join(sorted(KEYRING_SHA256))}",
            "set cuda.source.uri and cuda.source.keyring in the box's data",
        )
    return NVIDIA.format(distribution=name)


def is_own_list(path: str) -> bool:
    """Whether it is a source list that a package cuda-keyring brings: one URI with two Signed-By stops apt (P21).

    Of any distribution: a box that was upgraded, or one whose source is a mirror, has the list of another one.
    """
    return _OWN_LIST.fullmatch(path) is not None


def sources(uri: str) -> str:
    """The deb822 source: a flat repository, signed by NVIDIA's archive key."""
    return f"# Written by gpubox (cuda.source).\nTypes: deb\nURIs: {uri}\nSuites: /\nSigned-By: {KEYRING_FILE}\n"
