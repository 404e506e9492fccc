"""A real extension package, compiled for sm_120 on the box; on the next box its wheel comes from the cache."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

from gpubox.lab import lxc
from gpubox.support import paths
from tests.faults.packages import DEFAULTS, NAME, PackageBox, errors

SOURCE = paths.root() / "tests" / "cases" / "driver" / "sm120_probe"
BUILD = Path(__file__).parent / "build_deploy.py"
PACKAGES = ["ca-certificates", "curl", "g++", "python3-venv"]
SITE = "/opt/probe/lib/python3.11/site-packages"
LIMIT = "memory.limit_in_bytes"


@pytest.fixture(scope="module")
def box(package_box: PackageBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageBox]:
    folder = tmp_path_factory.mktemp("probe")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SM120_ARCHIVE", str(archive(folder)))
        patch.setenv("GPUBOX_CACHE", str(folder / "cache"))
        prepare(package_box)
        yield package_box


def prepare(box: PackageBox) -> None:
    box.wish(driver={"source": "nvidia"}, base={"packages": PACKAGES}, cuda=only_13_1())
    box.converge().ended_well()


def only_13_1() -> dict[str, object]:
    return {**DEFAULTS["cuda"], "toolkits": ["13.1"]}


def archive(folder: Path) -> Path:
    path = folder / "sm120_probe-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as out:
        info = folder / "PKG-INFO"
        info.write_text("Metadata-Version: 2.1\nName: sm120_probe\nVersion: 1.0\n")
        out.add(info, "sm120_probe-1.0/PKG-INFO")
        for file in SOURCE.iterdir():
            if file.is_file():
                out.add(file, f"sm120_probe-1.0/{file.name}")
    return path


def built(host: Host) -> dict[str, str]:
    record: dict[str, str] = json.loads(host.check_output(f"cat {SITE}/sm120_probe/built.json"))
    return record


@pytest.mark.pain("P28", "P29")
def test_compiled_once_then_from_the_cache(box: PackageBox) -> None:
    lxc.inside("lxc-cgroup", "-n", NAME, LIMIT, str(9 << 30))  # two jobs of 4 GiB fit below it, less what is in use
    first = box.converge(BUILD).ended_well()
    assert "compiling sm120-probe 1.0 with CUDA 13.1" in errors(first.output)
    record = built(box.host)
    assert record["CUDA_HOME"] == "/usr/local/cuda-13.1"
    assert record["nvcc"] == "/usr/local/cuda-13.1/bin/nvcc"
    assert record["SM120_PROBE"] == "as the stack says"
    assert record["python"] == "/opt/probe/bin/python"
    assert 1 <= int(record["MAX_JOBS"]) <= 2
    assert box.host.check_output(f"od -An -tx1 -N4 {SITE}/sm120_probe/twice.cubin").split() == ["7f", "45", "4c", "46"]
    assert box.converge(BUILD).ended_well().changed == []

    box.host.run_expect([0], "rm -rf /opt/probe")
    again = box.converge(BUILD).ended_well()
    assert "compiled here before" in errors(again.output)

    box.bare()
    prepare(box)
    other = box.converge(BUILD).ended_well()
    assert "compiled for a box like this before" in errors(other.output)
    assert "compiling" not in errors(other.output)
    assert built(box.host) == record
    assert box.converge(BUILD).ended_well().changed == []


@pytest.mark.pain("P29")
def test_jobs_follow_the_containers_own_limit(box: PackageBox) -> None:
    lxc.inside("lxc-cgroup", "-n", NAME, LIMIT, str(5 << 30))
    box.host.run_expect([0], "rm -rf /opt/probe /var/lib/gpubox/wheels")
    for folder in (paths.cache() / "source-wheels").iterdir():
        folder.rename(folder.with_name(f"{folder.name}.away"))
    box.converge(BUILD).ended_well()
    assert built(box.host)["MAX_JOBS"] == "1"


@pytest.mark.pain("P28")
def test_another_cuda_than_torchs_is_refused_before_the_build(box: PackageBox) -> None:
    box.host.run_expect([0], f"rm -rf {SITE}/sm120_probe* /var/lib/gpubox/wheels; mkdir -p {SITE}/torch")
    box.host.run_expect([0], f"echo \"cuda: Optional[str] = '12.8'\" > {SITE}/torch/version.py")
    refused = box.converge(BUILD)
    assert refused.code == 1
    assert "torch was built with CUDA 12.8, sm120-probe would be with 13.1" in errors(refused.output)
    box.host.run_expect([0], f"rm -r {SITE}/torch")
    box.converge(BUILD).ended_well()
