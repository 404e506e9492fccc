"""Step `cuda`: toolkits side by side, the default, and what the service sees."""

import pytest
from testinfra.host import Host

from gpubox import cuda
from gpubox.inventory import Box
from gpubox.server.service import ENVIRONMENT_PATH

KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }"


def with_units_environment(command: str) -> str:
    return f"set -a; . {ENVIRONMENT_PATH}; set +a; {command}"


def test_toolkits_are_installed_side_by_side(host: Host, box: Box) -> None:
    for version in box.settings.cuda.toolkits:
        assert host.package(cuda.toolkit_package(version)).is_installed, version
        assert f"release {version}," in host.check_output("%s/bin/nvcc --version", cuda.home(version))


def test_default_is_chosen_through_alternatives(host: Host, box: Box) -> None:
    answer = host.check_output("update-alternatives --query cuda")
    assert "Status: manual" in answer
    assert f"Value: {cuda.home(box.settings.cuda.default)}" in answer
    assert host.check_output("readlink /usr/local/cuda") == "/etc/alternatives/cuda"


def test_one_signed_source(host: Host, box: Box) -> None:
    files = host.check_output("grep -rlE 'compute/cuda|/cuda/' /etc/apt/sources.list.d /etc/apt/sources.list || true")
    assert files.split() == [cuda.SOURCE_FILE]
    assert f"Signed-By: {cuda.KEYRING_FILE}" in host.file(cuda.SOURCE_FILE).content_string


def test_nvcc_of_the_service_is_its_stacks(host: Host, box: Box) -> None:
    said = host.check_output("env -i bash -c %s", with_units_environment("nvcc --version"))
    assert f"release {box.stack.cuda_home}," in said


def test_nvcc_of_a_login_is_the_default(host: Host, box: Box) -> None:
    assert f"release {box.settings.cuda.default}," in host.check_output("/usr/local/cuda/bin/nvcc --version")


def test_a_kernel_compiles_for_sm_120(host: Host, box: Box) -> None:
    if "13.1" not in box.settings.cuda.toolkits:
        pytest.skip(f"toolkit 13.1 is not wished for: {box.settings.cuda.toolkits}")
    compiled = "%s/bin/nvcc -arch=sm_120 -cubin -o k.cubin k.cu && od -An -tx1 -N4 k.cubin"
    script = f"d=$(mktemp -d) && cd $d && echo %s > k.cu && {compiled}; code=$?; rm -r $d; exit $code"
    output = host.check_output(script, KERNEL, cuda.home("13.1"))
    assert output.split() == ["7f", "45", "4c", "46"]  # an ELF file: a cubin
