"""Step `cuda`: toolkits side by side, the default, and what the service sees."""

import pytest
from testinfra.host import Host

from gpubox.cuda import packages as cuda
from gpubox.hosts import Box
from gpubox.server import jit
from gpubox.server.service import ENVIRONMENT_PATH, UNIT, venv_of

KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }"


def with_units_environment(command: str) -> str:
    return f"set -a; . {ENVIRONMENT_PATH}; set +a; {command}"


def test_toolkits_are_installed_side_by_side(host: Host, box: Box) -> None:
    wish = box.settings.cuda
    for package in cuda.wishes(wish.toolkits, wish.parts, wish.exact):
        name, _, exact = package.partition("=")
        assert host.package(name).is_installed, name
        assert exact in {"", host.package(name).version}
    for version in (v for v in wish.toolkits if cuda.has_compiler(v, wish.parts)):
        assert f"release {version}," in host.check_output("%s/bin/nvcc --version", cuda.home(version))


@pytest.mark.pain("P20")
def test_default_is_chosen_through_alternatives(host: Host, box: Box) -> None:
    answer = host.check_output("update-alternatives --query cuda")
    assert "Status: manual" in answer
    assert f"Value: {cuda.home(box.settings.cuda.default)}" in answer
    assert host.check_output("readlink /usr/local/cuda") == "/etc/alternatives/cuda"


@pytest.mark.pain("P21")
def test_one_signed_source(host: Host, box: Box) -> None:
    files = host.check_output("grep -rlE 'compute/cuda|/cuda/' /etc/apt/sources.list.d /etc/apt/sources.list || true")
    assert files.split() == [cuda.SOURCE_FILE]
    assert f"Signed-By: {cuda.KEYRING_FILE}" in host.file(cuda.SOURCE_FILE).content_string


@pytest.mark.pain("P19")
def test_nvcc_of_the_service_is_its_stacks(host: Host, box: Box) -> None:
    said = host.check_output("env -i bash -c %s", with_units_environment("nvcc --version"))
    assert f"release {box.stack.cuda_home}," in said


def test_nvcc_of_a_login_is_the_default(host: Host, box: Box) -> None:
    assert f"release {box.settings.cuda.default}," in host.check_output("env -i HOME=/root bash -lc 'nvcc --version'")


@pytest.mark.pain("P26")
def test_no_login_has_a_library_path(host: Host) -> None:
    assert host.check_output("env -i HOME=/root bash -lc 'echo \"$LD_LIBRARY_PATH\"'") == ""


@pytest.mark.pain("P31")
def test_the_services_toolkit_has_the_headers_of_kernels_compiled_at_run_time(host: Host, box: Box) -> None:
    for header in cuda.JIT_HEADERS:
        assert host.file(f"{cuda.home(box.stack.cuda_home)}/include/{header}").exists, header


@pytest.mark.pain("P30")
def test_kernels_compiled_at_run_time_are_kept_for_the_venv(host: Host, box: Box) -> None:
    there = host.check_output("systemctl show %s --property=Environment --value", UNIT).split()
    assert there == [f"{name}={path}" for name, path in jit.environment(venv_of(box)).items()]


def test_a_kernel_compiles_for_sm_120(host: Host, box: Box) -> None:
    if "13.1" not in box.settings.cuda.toolkits:
        pytest.skip(f"toolkit 13.1 is not wished for: {box.settings.cuda.toolkits}")
    compiled = "%s/bin/nvcc -arch=sm_120 -cubin -o k.cubin k.cu && od -An -tx1 -N4 k.cubin"
    script = f"d=$(mktemp -d) && cd $d && echo %s > k.cu && {compiled}; code=$?; rm -r $d; exit $code"
    output = host.check_output(script, KERNEL, cuda.home("13.1"))
    assert output.split() == ["7f", "45", "4c", "46"]  # an ELF file: a cubin
