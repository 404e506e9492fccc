"""Builds the package as flash-attn and its like are built: nvcc of CUDA_HOME, and what the environment says.

The wheel holds the compiled kernel and a record of the environment that it was built in.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

NAME, VERSION = "sm120_probe", "1.0"
RECORDED = ("CUDA_HOME", "MAX_JOBS", "SM120_PROBE")


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    home = os.environ["CUDA_HOME"]
    subprocess.run([f"{home}/bin/nvcc", "-arch=sm_120", "-cubin", "-o", "twice.cubin", "twice.cu"], check=True)
    record = {name: os.environ.get(name) for name in RECORDED}
    record |= {"nvcc": shutil.which("nvcc"), "python": sys.executable, "host": os.uname().nodename}
    name = f"{NAME}-{VERSION}-py3-none-linux_x86_64.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(Path(wheel_directory, name), "w") as wheel:
        wheel.write("twice.cubin", f"{NAME}/twice.cubin")
        wheel.writestr(f"{NAME}/__init__.py", "")
        wheel.writestr(f"{NAME}/built.json", json.dumps(record))
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        tag = "Wheel-Version: 1.0\nGenerator: sm120_probe\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
        wheel.writestr(f"{info}/WHEEL", tag)
        names = [*wheel.namelist(), f"{info}/RECORD"]
        wheel.writestr(f"{info}/RECORD", "".join(f"{each},,\n" for each in names))
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    raise NotImplementedError("the tests make the archive")
