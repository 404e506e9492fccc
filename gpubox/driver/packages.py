"""The driver's userland: in exactly the version of the kernel module, or not at all.

A container has the kernel module of its hypervisor. Libraries of another version fail with `Failed to initialize NVML:
Driver/library version mismatch`, also within one major version:
https://github.com/tinygrad/open-gpu-kernel-modules/issues/47 (570.124.04 and .06).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch

from gpubox.apt.sources import Source
from gpubox.support.versions import at_least

PINS = "/etc/apt/preferences.d/00-gpubox-driver"
"""First by its name: of several records that fit a package, apt takes the first."""
UNATTENDED = "/etc/apt/apt.conf.d/52gpubox-driver"
SOURCE_FILE = "/etc/apt/sources.list.d/gpubox-driver.sources"

KERNEL_PACKAGES = (
    "nvidia-kernel*",
    "nvidia-driver*",
    "nvidia-dkms*",
    "nvidia-*-dkms",
    "nvidia-open",
    "nvidia-open-[0-9]*",
    "nvidia-open-kernel*",
    "nvidia-headless*",
    "nvidia-tesla*-kernel*",
    "nvidia-tesla*-driver*",
    "cuda-drivers*",
    "linux-modules-nvidia*",
    "linux-objects-nvidia*",
)
"""What brings kernel modules, or pulls them in (https://github.com/NVIDIA/ansible-role-nvidia-driver/issues/60)."""
NO_KERNEL = ("nvidia-driver-cuda", "nvidia-driver-libs", "nvidia-kernel-common*")
"""What is named like those and is userland: NVIDIA's compute-only package for Debian, and what Ubuntu's and NVIDIA's
libnvidia-compute depend on (https://packages.ubuntu.com/jammy/libnvidia-compute-590)."""
USERLAND = (
    "nvidia-*",
    "libnvidia-*",
    "libcuda1*",
    "libcudadebugger*",
    "libnvcuvid*",
    "libnvoptix*",
    "firmware-nvidia-*",
)
"""What may have the driver's version; a pin to that version does nothing to the others."""
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")

_PACKAGES = {
    "debian": ("libcuda1", "libnvidia-ml1", "nvidia-smi"),
    "ubuntu": ("libnvidia-compute-{major}", "nvidia-utils-{major}"),
}
_NVIDIAS_OWN = {
    "debian": ("560", ("libcuda1", "libnvidia-ml1", "nvidia-driver-cuda")),
    "ubuntu": ("590", ("libnvidia-compute",)),
}
"""Since which major version NVIDIA's repository has other names, and which. For Debian nvidia-smi is an empty package
then, and the program is in the compute-only one; for Ubuntu no name has the branch, and there is no nvidia-utils:
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/ (compute-only installation; recent updates)."""
FABRIC_MANAGER = ("nvidia-fabricmanager-{major}", "nvidia-fabricmanager")
_OWN_VERSIONS = {"nvidia-persistenced", "nvidia-settings", "nvidia-modprobe", "nvidia-xconfig"}
_VERSION = re.compile(r"^(?:\d+:)?(\d{3}\.\d+(?:\.\d+)?)(?:-|$)")


def module_version(text: str) -> str | None:
    """The version in /proc/driver/nvidia/version; None: that text has none, so no module is loaded."""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.M)
    return found[1] if found else None


def upstream(version: str) -> str:
    """A package's version -> the driver's: `535.261.03-1` -> `535.261.03`; empty: it is no driver's version."""
    found = _VERSION.match(version)
    return found[1] if found else ""


def library_version(path: str) -> str:
    """`/usr/lib/.../libcuda.so.535.261.03` -> `535.261.03`; empty: its name does not say."""
    found = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", path)
    return found[1] if found else ""


def packages(distribution: str, origin: str, module: str, chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the packages to ask for; the rest of the set comes with them.

    + distribution: as `debian12`
    + origin: who packs it: `nvidia` or `distribution` (driver.source)
    + module: version of the kernel module
    + chosen: the box's own list (driver.packages), with {major} for the major version
    """
    family = "ubuntu" if distribution.startswith("ubuntu") else "debian"
    major = module.partition(".")[0]
    since, renamed = _NVIDIAS_OWN[family]
    usual = renamed if origin == "nvidia" and at_least(module, since) else _PACKAGES[family]
    return tuple(name.format(major=major) for name in (chosen or usual))


def candidates(chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """All names that `packages` may give, before distribution and module are known."""
    sets = (*_PACKAGES.values(), *(names for _, names in _NVIDIAS_OWN.values()))
    asked = tuple(chosen) or tuple(dict.fromkeys(name for names in sets for name in names))
    return (*asked, *FABRIC_MANAGER)


def is_locked(name: str, version: str) -> bool:
    """Whether an installed package must have the module's version. Daemons and tools have versions of their own."""
    return bool(upstream(version)) and name not in _OWN_VERSIONS and not is_kernel_package(name)


def is_kernel_package(name: str) -> bool:
    """Whether it brings kernel modules or pulls them in."""
    return _is_like(name, KERNEL_PACKAGES) and not _is_like(name, NO_KERNEL)


def choose(offers: Mapping[str, Sequence[str]], names: Sequence[str], module: str) -> str | None:
    """The package version of the driver's version that every one of `names` is offered in; None: there is none.

    + offers: name -> versions that apt knows, best first
    """
    fitting = [[v for v in offers.get(name, ()) if upstream(v) == module] for name in names]
    return next((v for v in (fitting[0] if fitting else []) if all(v in other for other in fitting)), None)


def same(offers: Sequence[str], version: str) -> str | None:
    """Of a package's versions the one that goes with `version` of another: the driver's part counts, not the packing.

    Ubuntu packs the libraries of 580.126.20 as -0ubuntu0.24.04.2 and the fabric manager as -0ubuntu3.
    """
    if version in offers:
        return version
    return next((offer for offer in offers if upstream(offer) and upstream(offer) == upstream(version)), None)


def pins(module: str, names: Sequence[str], in_container: bool) -> str:
    """The preferences that keep the whole set at the module's version, and kernel modules out of a container."""
    exact = f"Pin: version {module}-*\nPin-Priority: 1001\n"
    away = f"Package: {' '.join(KERNEL_PACKAGES)}\nPin: release *\nPin-Priority: -1\n\n" if in_container else ""
    return (
        f"# Written by gpubox (driver). The kernel module is {module}.\n"
        f"Package: {' '.join([*names, *NO_KERNEL])}\n{exact}\n{away}Package: {' '.join(USERLAND)}\n{exact}"
    )


def unattended() -> str:
    """What unattended-upgrades must leave alone, besides what is held: regular expressions of names."""
    return (
        "// Written by gpubox (driver): a library newer than the kernel module is a box without GPUs.\n"
        'Unattended-Upgrade::Package-Blacklist { "^nvidia-"; "^libnvidia-"; "^libcuda"; };\n'
    )


def debian_sources(present: Iterable[Source]) -> str:
    """Debian's contrib and non-free, from the mirrors and with the keys that its main has; empty: not needed."""
    own = [source for source in present if source.file != SOURCE_FILE]
    whole = {(s.uri, s.suite) for s in own if "non-free" in s.components and "contrib" in s.components}
    lacking = dict.fromkeys((s.uri, s.suite, s.signed_by) for s in own if "main" in s.components)
    stanzas = [
        f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: contrib non-free\n"
        + (f"Signed-By: {key}\n" if key else "")
        for uri, suite, key in lacking
        if (uri, suite) not in whole
    ]
    return "# Written by gpubox (driver.source).\n" + "\n".join(stanzas) if stanzas else ""


def _is_like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)
