"""Toolkits in parts and in exact versions, and what is said about what programs may trip over."""

import pytest

from tests.faults.packages import DEFAULTS, PackageBox, errors

PARTS = {"13.1": ["nvcc", "cudart-dev"]}


def cuda(**settings: object) -> dict[str, object]:
    return {**DEFAULTS["cuda"], "toolkits": ["13.1"], "parts": PARTS, **settings}


@pytest.mark.pain("P24", "P26", "P31")
def test_parts_in_exact_versions(package_box: PackageBox) -> None:
    package_box.wish(driver={"source": "nvidia"}, cuda=cuda(exact={"cuda-nvcc-13-1": "13.1.115-1"}))
    package_box.host.run_expect([0], "echo LD_LIBRARY_PATH=/usr/local/cuda/lib64 >> /etc/environment")
    text = errors(package_box.converge().ended_well().output)
    assert "adding curand_kernel.h to toolkit 13.1" in text
    assert package_box.host.file("/usr/local/cuda-13.1/include/curand_kernel.h").exists
    assert "LD_LIBRARY_PATH for every login, /etc/environment:LD_LIBRARY_PATH=/usr/local/cuda/lib64" in text
    shown = package_box.host.check_output("dpkg-query -W -f '${db:Status-Abbrev}${Package}\\n' 'cuda-toolkit-1*'")
    assert "ii cuda-toolkit-13-1\n" not in f"{shown}\n"
    assert "Pin: version 13.1.115-1" in package_box.host.file("/etc/apt/preferences.d/00-gpubox-cuda").content_string
    assert "release 13.1" in package_box.host.check_output("env -i HOME=/root bash -lc 'nvcc --version'")
    assert package_box.converge().ended_well().changed == []


@pytest.mark.pain("P24")
def test_a_version_that_no_source_has(package_box: PackageBox) -> None:
    package_box.wish(driver={"source": "nvidia"}, cuda=cuda(exact={"cuda-nvcc-13-1": "13.1.999-1"}))
    refused = package_box.converge()
    assert refused.code == 1
    assert "Version '13.1.999-1' for 'cuda-nvcc-13-1' was not found" in errors(refused.output)
    assert "release 13.1" in package_box.host.check_output("/usr/local/cuda/bin/nvcc --version")


@pytest.mark.pain("P26")
def test_two_runtimes_are_reported(package_box: PackageBox) -> None:
    package_box.wish(driver={"source": "nvidia"}, cuda=cuda(toolkits=["12.8", "13.1"], parts={}))
    text = errors(package_box.converge().ended_well().output)
    assert "the loader finds libcudart.so.12" in text
    assert "libcudart.so.13" in text
    assert package_box.converge().ended_well().changed == []
