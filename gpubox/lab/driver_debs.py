"""NVIDIA's driver packages as the lab stands them in: the userland's names and exact dependencies, and no driver.

Each described hardware's version is on offer, and a newer one that fits none: apt's own choice is the wrong one, as in
the field. The packages that bring kernel modules are there too, so that they can be seen to stay away. nvidia-smi is
an empty package, and nvidia-driver-cuda has the program, as in NVIDIA's repository since 560.
"""

from pathlib import Path

from gpubox.lab import hardware, nvidia_smi, paths
from gpubox.lab.debs import Deb
from gpubox.lab.elf import library

NEWEST = "595.45.04"
_DEBIANS_OWN = "535."
_LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def all_debs() -> list[Deb]:
    """Every driver package of the repository."""
    return [deb for version in versions() for deb in _of(version)]


def versions() -> list[str]:
    """Those of the described hardware, without what Debian itself has, and one that is newer than all of them."""
    described = {hardware.load(name).driver.version for name in hardware.names()}
    return [*sorted(version for version in described if not version.startswith(_DEBIANS_OWN)), NEWEST]


def _of(version: str) -> list[Deb]:
    full = f"{version}-1"
    smi = Path(nvidia_smi.__file__).read_text()
    kernel = Deb("nvidia-kernel-open-dkms", full, "NVIDIA open kernel module")
    driver = Deb(
        "nvidia-driver", full, "NVIDIA driver", (f"nvidia-kernel-open-dkms (= {full})", f"libcuda1 (= {full})")
    )
    return [
        _library("libcuda1", "libcuda.so", version, (f"libnvidia-ptxjitcompiler1 (= {full})",)),
        _library("libnvidia-ptxjitcompiler1", "libnvidia-ptxjitcompiler.so", version),
        _library("libnvidia-ml1", "libnvidia-ml.so", version),
        Deb(
            "nvidia-driver-cuda",
            full,
            "NVIDIA driver for compute alone",
            (f"libcuda1 (= {full})", f"libnvidia-ml1 (= {full})", f"nvidia-persistenced (= {full})"),
            replaces=("nvidia-smi",),
            texts={"/usr/bin/nvidia-smi": smi},
            executables=frozenset({"/usr/bin/nvidia-smi"}),
        ),
        Deb("nvidia-persistenced", full, "NVIDIA persistence daemon"),
        Deb("nvidia-smi", full, "NVIDIA transitional package, empty", (f"nvidia-driver-cuda (= {full})",)),
        kernel,
        driver,
        Deb("cuda-drivers", full, "NVIDIA driver meta-package", (f"nvidia-driver (= {full})",)),
    ]


def _library(package: str, name: str, version: str, depends: tuple[str, ...] = ()) -> Deb:
    soname = f"{name}.1"
    return Deb(
        package,
        f"{version}-1",
        f"NVIDIA driver library {soname}",
        depends,
        trees={f"{_LIBRARIES}/{name}.{version}": _file(soname)},
        links={f"{_LIBRARIES}/{soname}": f"{name}.{version}"},
        scripts={"postinst": "#!/bin/sh\nset -e\nldconfig\n"},
    )


def _file(soname: str) -> Path:
    path = paths.cache() / "driver" / soname
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(library(soname))
    return path
