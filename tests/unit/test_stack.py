"""The committed stacks: they load, say what their locks say, and their locks fit their inputs."""

import shutil
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubox.cli import lock
from gpubox.settings import stack
from gpubox.support import paths
from gpubox.support.errors import GpuboxError


@pytest.mark.parametrize("name", stack.names())
@pytest.mark.pain("P32", "P34")
def test_stack_says_what_its_locks_say(name: str) -> None:
    it = stack.load(name)
    pins = it.pins
    assert (pins["sglang"], pins["torch"]) == (it.sglang, it.torch)
    assert lock.problems(it) == []


@pytest.mark.pain("P87")
def test_history_knows_glm5() -> None:
    """0.5.9 pins a transformers that does not know glm_moe_dsa: https://github.com/zai-org/GLM-5/issues/22."""
    major, minor = stack.load("sglang-0.5.9-cu128").pins["transformers"].split(".")[:2]
    assert (int(major), int(minor)) >= (5, 2)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own with the stacks and the local packages."""
    for part in ("stacks", "gpubox/lab/torch_cpu_platform"):
        shutil.copytree(paths.root() / part, tmp_path / part)
    monkeypatch.setenv("GPUBOX_ROOT", str(tmp_path))
    return tmp_path


CPU = "stacks/sglang-0.5.23-cpu"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (f"{CPU}/sglang.in", "torchvision==0.28.0", "torchvision==0.29.1", "sglang.lock was made from other inputs"),
        (f"{CPU}/stack.yaml", 'python: "3.11"', 'python: "3.12"', "packages.lock was made from other inputs"),
        ("stacks/sglang-0.5.9-cu128/overrides.txt", "<5.3", "<5.4", "sglang.lock was made from other inputs"),
        (
            "gpubox/lab/torch_cpu_platform/gpubox_torch_cpu_platform/platform.py",
            "torch_native",
            "triton",
            "local.lock does not fit gpubox/lab/torch_cpu_platform as built here",
        ),
    ],
)
def test_check_names_what_no_longer_fits(checkout: Path, file: str, old: str, new: str, said: str) -> None:
    path = checkout / file
    path.write_text(path.read_text().replace(old, new))
    result = CliRunner().invoke(lock.command, ["--all", "--check"])
    assert result.exit_code == 1
    assert said in result.output
    assert len(result.output.split("Error:")) == 2


def test_a_lock_that_is_gone_says_how_to_make_it(checkout: Path) -> None:
    (checkout / CPU / "sglang.lock").unlink()
    with pytest.raises(GpuboxError, match=r"not there: sglang\.lock\n(.*\n)?.*gpubox lock sglang"):
        stack.load("sglang-0.5.23-cpu")
    assert any("sglang.lock is not there" in each for each in lock.problems(stack.load("sglang-0.5.23-cpu", False)))


def test_one_package_locked_twice_is_an_error(checkout: Path) -> None:
    path = checkout / CPU / "sglang.lock"
    path.write_text(path.read_text() + f"numpy==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    with pytest.raises(GpuboxError, match=r"locks numpy twice: .* and 1\.0"):
        _ = stack.load("sglang-0.5.23-cpu").pins


def test_a_changed_local_package_is_not_sent(checkout: Path) -> None:
    it = stack.load("sglang-0.5.23-cpu")
    assert sorted(it.payload()) == ["gpubox_torch_cpu_platform-0.1.0-py3-none-any.whl", "packages.lock"]
    lock_file = checkout / CPU / "local.lock"
    lock_file.write_text(lock_file.read_text().replace("sha256:", "sha256:0"))
    with pytest.raises(GpuboxError, match=r"local\.lock does not fit"):
        it.payload()


def test_source_builds_travel_with_their_hash() -> None:
    files = stack.load("sglang-0.5.9-cu128").payload()
    assert files["source-builds.lock"].startswith(b"flash-attn==2.8.3 --hash=sha256:1e71dd64")


def test_lock_wants_a_name() -> None:
    result = CliRunner().invoke(lock.command, ["--check"])
    assert result.exit_code == 1
    assert "sglang-0.5.23-cu130" in result.output


NO_SUCH_TORCH = """summary: A Python that torch has no wheels for
sglang: 0.5.23
python: "3.13"
device: cpu
torch: 2.13.0
torch_cuda: null
cuda_home: "13.1"
locks: [{file: packages.lock}]
status: practice
"""


@pytest.mark.pain("P36")
def test_a_python_without_torch_is_named_while_locking(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels, wheel, folder = tmp_path / "wheels", "torch-2.13.0-cp311-cp311-manylinux_2_34_x86_64.whl", "torch-2.13.0"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / wheel, "w") as out:
        out.writestr(f"{folder}.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
        out.writestr(f"{folder}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_34_x86_64\n")
    for name, value in {"OFFLINE": "1", "CACHE_DIR": str(tmp_path / "cache"), "FIND_LINKS": str(wheels)}.items():
        monkeypatch.setenv(f"UV_{name}", value)
    (checkout / "stacks/new").mkdir()
    (checkout / "stacks/new/stack.yaml").write_text(NO_SUCH_TORCH)
    (checkout / "stacks/new/packages.in").write_text("torch==2.13.0\n")
    result = CliRunner().invoke(lock.command, ["new"])
    assert result.exit_code == 1
    assert "uv cannot lock new/packages.lock" in result.output
    assert "cp313" in result.output
    assert not (checkout / "stacks/new/packages.lock").exists()
