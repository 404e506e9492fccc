"""NVIDIA's CUDA packages as the lab stands them in: names, dependencies, paths and alternatives of the real ones.

13.1 holds NVIDIA's own nvcc from its PyPI wheels and really compiles, given a host compiler: the box needs
`build-essential` (gcc, g++ and libc headers), which NVIDIA's packages do not bring. For 12.8 PyPI has the runtime
but no nvcc: that one only prints NVIDIA's version text.
"""

from dataclasses import dataclass
from pathlib import Path

from gpubox.lab import paths
from gpubox.lab.debs import Deb

REPOSITORY = "http://10.87.0.10:8080/cuda/debian12/x86_64/"
_TARGETS = "targets/x86_64-linux"
_NO_CURAND = '#error "STAND-IN of the gpubox practice machine: a header without CURAND behind it"\n'


@dataclass(frozen=True)
class Toolkit:
    """One CUDA release: its dotted version, the versions of its packages, and where its unpacked wheels lie."""

    version: str
    toolkit: str
    nvcc: str
    cudart: str
    wheels: Path

    @property
    def dashed(self) -> str:
        """The ending of the package names: 13-1."""
        return self.version.replace(".", "-")

    @property
    def major(self) -> str:
        """13 of 13.1."""
        return self.version.split(".")[0]

    @property
    def home(self) -> str:
        """Where it is installed."""
        return f"/usr/local/cuda-{self.version}"

    @property
    def priority(self) -> int:
        """The priority of its alternatives: 131 for 13.1."""
        return int(self.version.replace(".", ""))


def all_debs(key: bytes, wheels: dict[str, Path]) -> list[Deb]:
    """Every package of the repository: `wheels` are each release's unpacked wheels, `key` goes into the keyring."""
    old = Toolkit("12.8", "12.8.1-1", "12.8.93-1", "12.8.90-1", wheels["12.8"] / "nvidia/cuda_runtime")
    new = Toolkit("13.1", "13.1.1-1", "13.1.115-1", "13.1.80-1", wheels["13.1"] / "nvidia/cu13")
    return [_keyring(key), *_common(old, new), *_runtime(old), *_runtime(new), *_nvcc_stand_in(old), *_nvcc(new)]


def wheel_locks() -> dict[str, Path]:
    """The hash-locked wheels behind each release."""
    folder = Path(__file__).parent / "cuda"
    return {version: folder / f"wheels-{version}.txt" for version in ("12.8", "13.1")}


def _keyring(key: bytes) -> Deb:
    binary = paths.state() / "apt-key" / "cuda-archive-keyring.gpg"
    binary.write_bytes(key)
    return Deb(
        "cuda-keyring",
        "1.1-1",
        "GPG keyring for the CUDA repository",
        architecture="all",
        trees={"/usr/share/keyrings/cuda-archive-keyring.gpg": binary},
        texts={
            "/etc/apt/sources.list.d/cuda-debian12-x86_64.list": (
                f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {REPOSITORY} /\n"
            ),
            "/etc/apt/preferences.d/cuda-repository-pin-600": (
                "Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n"
            ),
        },
        scripts={
            "conffiles": (
                "/etc/apt/sources.list.d/cuda-debian12-x86_64.list\n/etc/apt/preferences.d/cuda-repository-pin-600\n"
            )
        },
    )


def _common(*toolkits: Toolkit) -> list[Deb]:
    newest = toolkits[-1]
    every = Deb(
        "cuda-toolkit-config-common",
        newest.cudart,
        "Common config package for CUDA Toolkit",
        architecture="all",
        texts={"/etc/ld.so.conf.d/000_cuda.conf": f"/usr/local/cuda/{_TARGETS}/lib\n"},
    )
    metas = [
        Deb("cuda-toolkit", newest.toolkit, "CUDA Toolkit meta-package", (f"cuda-toolkit-{newest.dashed}",)),
        *(Deb(f"cuda-toolkit-{t.major}", t.toolkit, "CUDA Toolkit meta-package", (_toolkit(t),)) for t in toolkits),
        *(Deb(_toolkit(t), t.toolkit, f"CUDA Toolkit {t.version} meta-package", _parts(t)) for t in toolkits),
        *(
            Deb(f"cuda-compiler-{t.dashed}", t.toolkit, "CUDA compiler meta-package", (f"cuda-nvcc-{t.dashed}",))
            for t in toolkits
        ),
    ]
    return [every, *metas, *(_config(t) for t in toolkits), *(_major_config(t) for t in toolkits)]


def _toolkit(toolkit: Toolkit) -> str:
    return f"cuda-toolkit-{toolkit.dashed}"


def _parts(toolkit: Toolkit) -> tuple[str, ...]:
    dashed = toolkit.dashed
    return (f"cuda-compiler-{dashed}", f"cuda-cudart-dev-{dashed}", f"libcurand-dev-{dashed}")


def _major_config(toolkit: Toolkit) -> Deb:
    place = f"/etc/ld.so.conf.d/{999 - int(toolkit.major)}_cuda-{toolkit.major}.conf"
    return Deb(
        f"cuda-toolkit-{toolkit.major}-config-common",
        toolkit.cudart,
        f"Common config package for CUDA Toolkit {toolkit.major}",
        architecture="all",
        texts={place: f"/usr/local/cuda-{toolkit.major}/{_TARGETS}/lib\n"},
    )


def _config(toolkit: Toolkit) -> Deb:
    """The package whose scripts own the alternatives /usr/local/cuda and /usr/local/cuda-MAJOR, as NVIDIA's does."""
    groups = [("/usr/local/cuda", "cuda"), (f"/usr/local/cuda-{toolkit.major}", f"cuda-{toolkit.major}")]
    install = [f"    update-alternatives --install {link} {g} {toolkit.home} {toolkit.priority}" for link, g in groups]
    remove = [f"    update-alternatives --remove {g} {toolkit.home}" for _, g in groups]
    return Deb(
        f"cuda-toolkit-{toolkit.dashed}-config-common",
        toolkit.cudart,
        f"Common config package for CUDA Toolkit {toolkit.version}",
        architecture="all",
        links={f"{toolkit.home}/lib64": f"{_TARGETS}/lib", f"{toolkit.home}/include": f"{_TARGETS}/include"},
        scripts={
            "postinst": _script('if [ "$1" = configure ]; then', *install, "    ldconfig", "fi"),
            "prerm": _script('if [ "$1" = remove ]; then', *remove, "fi"),
        },
    )


def _runtime(toolkit: Toolkit) -> list[Deb]:
    dashed, libraries = toolkit.dashed, f"{toolkit.home}/{_TARGETS}/lib"
    common = (f"cuda-toolkit-{dashed}-config-common", f"cuda-toolkit-{toolkit.major}-config-common")
    shared = f"libcudart.so.{toolkit.major}"
    include = toolkit.wheels / "include"
    headers = {
        f"{toolkit.home}/{_TARGETS}/include/{p.name}": p
        for p in include.iterdir()
        if p.name not in ("crt", "cccl", "nvvm.h", "__init__.py", "__pycache__")
    }
    static = {f"{libraries}/{p.name}": p for p in (toolkit.wheels / "lib").glob("*.a")}
    return [
        Deb(
            f"cuda-cudart-{dashed}",
            toolkit.cudart,
            "CUDA Runtime native libraries",
            (*common, "cuda-toolkit-config-common"),
            trees={f"{libraries}/{shared}": toolkit.wheels / "lib" / shared},
            scripts={"postinst": _script("ldconfig")},
        ),
        Deb(
            f"cuda-cudart-dev-{dashed}",
            toolkit.cudart,
            "CUDA Runtime native dev links, headers",
            (f"cuda-cudart-{dashed}", f"cuda-crt-{dashed}", f"cuda-cccl-{dashed}"),
            trees=headers | static,
            links={f"{libraries}/libcudart.so": shared},
        ),
        Deb(
            f"libcurand-dev-{dashed}",
            toolkit.cudart,
            "CURAND native dev links, headers",
            (f"cuda-toolkit-{dashed}-config-common",),
            texts={f"{toolkit.home}/{_TARGETS}/include/curand_kernel.h": _NO_CURAND},
        ),
    ]


def _nvcc(toolkit: Toolkit) -> list[Deb]:
    dashed, home, wheels = toolkit.dashed, toolkit.home, toolkit.wheels
    programs = {f"{home}/bin/{p.name}": p for p in (wheels / "bin").iterdir() if p.name != "crt"}
    include = f"{home}/{_TARGETS}/include"
    nvvm = {f"{home}/nvvm": wheels / "nvvm", f"{home}/nvvm/lib64/libnvvm.so.4": wheels / "lib/libnvvm.so.4"}
    nvvm |= {f"{home}/nvvm/include/nvvm.h": wheels / "include/nvvm.h"}
    crt = {f"{include}/crt": wheels / "include/crt", f"{home}/bin/crt": wheels / "bin/crt"}
    return [
        Deb(
            f"cuda-nvcc-{dashed}",
            toolkit.nvcc,
            "CUDA nvcc",
            (f"cuda-crt-{dashed}", f"libnvvm-{dashed}"),
            trees=programs,
        ),
        Deb(f"cuda-crt-{dashed}", toolkit.nvcc, "CUDA crt", trees=crt),
        Deb(f"libnvvm-{dashed}", toolkit.nvcc, "CUDA nvvm", trees=nvvm),
        Deb(f"cuda-cccl-{dashed}", toolkit.nvcc, "CUDA CCCL", trees={f"{include}/cccl": wheels / "include/cccl"}),
    ]


def _nvcc_stand_in(toolkit: Toolkit) -> list[Deb]:
    dashed, nvcc = toolkit.dashed, f"{toolkit.home}/bin/nvcc"
    crt = toolkit.wheels / "include" / "crt"
    return [
        Deb(
            f"cuda-nvcc-{dashed}",
            toolkit.nvcc,
            "CUDA nvcc",
            (f"cuda-crt-{dashed}", f"cuda-nvvm-{dashed}"),
            texts={nvcc: (paths.files() / "nvcc-12.8").read_text()},
            executables=frozenset({nvcc}),
        ),
        Deb(
            f"cuda-crt-{dashed}",
            toolkit.nvcc,
            "CUDA crt",
            trees={f"{toolkit.home}/{_TARGETS}/include/crt": crt} if crt.is_dir() else {},
        ),
        Deb(f"cuda-nvvm-{dashed}", toolkit.nvcc, "CUDA nvvm"),
        Deb(f"cuda-cccl-{dashed}", toolkit.cudart, "CUDA CCCL"),
    ]


def _script(*lines: str) -> str:
    return "\n".join(["#!/bin/sh", "set -e", *lines, ""])
