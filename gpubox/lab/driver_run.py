"""NVIDIA's installer NVIDIA-Linux-x86_64-VERSION.run, stood in: its options and what it leaves, and no driver."""

from base64 import b64encode

from gpubox.lab.elf import library

_LIBRARIES = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")


def text(version: str) -> str:
    """The installer of that version. Without --no-kernel-modules it fails, as the real one in a container does."""
    names = " ".join(_LIBRARIES)
    cases = "\n".join(f"    {name}) echo {b64encode(library(f'{name}.1')).decode()} ;;" for name in _LIBRARIES)
    return f"""#!/bin/sh
# STAND-IN of the gpubox practice machine for NVIDIA-Linux-x86_64-{version}.run
set -eu
case " $* " in
*" --no-kernel-modules "*) ;;
*) echo "ERROR: Unable to find the kernel source tree for the currently running kernel (STAND-IN)" >&2; exit 1 ;;
esac
content() {{
    case $1 in
{cases}
    esac
}}
folder=/usr/lib/x86_64-linux-gnu
for name in {names}; do
    rm -f "$folder/$name".*
    content "$name" | base64 -d >"$folder/$name.{version}"
    ln -sf "$name.{version}" "$folder/$name.1"
done
echo "STAND-IN: userland of driver {version} is installed, without kernel modules"
"""
