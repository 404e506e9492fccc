"""The state machine of source patches: on hand-made shapes, and on the files of real releases."""

import hashlib
import json
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gpubox.remote import patch as onbox
from gpubox.server import patches
from gpubox.support import paths
from gpubox.support.errors import GpuboxError
from tests.unit import sent

NAME = "flashinfer-cutlass-autotune"
GATE = onbox.GATES[NAME]
GATED = (Path(__file__).parent.parent / "cases/patches/gated.py.txt").read_bytes()

UNKNOWN = {
    "syntax error": (b"-> bool:", b"-> bool"),
    "not utf-8": (b"Whether to tune", b"\xff\xfe"),
    "defined twice": (b"    def warm_up", b"    def should_run_flashinfer_autotune(self): ...\n    def warm_up"),
    "not defined": (b"def _should_run_", b"def _may_run_"),
    "async": (b"    def _should", b"    async def _should"),
    "no comment": (b'            # "flashinfer_cutlass",\n', b""),
    "commented twice": (b'            # "flashinfer_cutlass",\n', b'            # "flashinfer_cutlass",\n' * 2),
    "comment outside the list": (
        b'            # "flashinfer_cutlass",\n        ]:\n',
        b'        ]:\n            # "flashinfer_cutlass",\n',
    ),
    "another list": (b'"flashinfer_trtllm",', b'"flashinfer_new",'),
    "two lists": (b"        return True", b'        return backend_str in ["flashinfer_trtllm"]'),
    "list behind a name": (b"if backend_str not in [", b"gate = backend_str not in ["),
    "the list forbids": (b"not in [", b"in ["),
    "more than one test": (b"if backend_str not in", b"if self.old or backend_str not in"),
    "returns true": (b"        ]:\n            return False", b"        ]:\n            return True"),
    "does more than return": (
        b"        ]:\n            return",
        b"        ]:\n            self.log()\n            return",
    ),
    "an else": (
        b"            return False\n        return True",
        b"            return False\n        else: return True",
    ),
    "also forbidden before": (
        b"        backend_str =",
        b'        if self.b == "flashinfer_cutlass": return False\n        backend_str =',
    ),
    "a call on the left": (b"if backend_str not in", b"if self.backend() not in"),
}

RELEASES = {
    "0.5.8": ("gated", "model_runner.py"),
    "0.5.9": ("gated", "model_runner.py"),
    "0.5.10.post1": ("gated", "model_runner.py"),
    "0.5.12": ("gated", "model_runner.py"),
    "0.5.13": ("upstream", "model_runner.py"),
    "0.5.14": ("upstream", "runner/base_runner.py"),
    "0.5.16": ("upstream", "runner/flashinfer_autotune.py"),
    "0.5.23": ("upstream", "runner/flashinfer_autotune.py"),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    file = tmp_path / "sglang/srt/model_executor/model_runner.py"
    file.parent.mkdir(parents=True)
    file.write_bytes(GATED)
    return tmp_path / "sglang"


def runner(package: Path) -> Path:
    return package / "srt/model_executor/model_runner.py"


def contents(package: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in package.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", UNKNOWN)
@pytest.mark.pain("P39")
def test_another_shape_is_unknown_and_stays_untouched(package: Path, case: str) -> None:
    old, new = UNKNOWN[case]
    assert GATED.count(old) == 1
    runner(package).write_bytes(GATED.replace(old, new))
    before = contents(package)
    assert onbox.state(package, NAME).state == "unknown"
    with pytest.raises(onbox.RefusedError, match="nothing was changed"):
        onbox.apply(package, NAME)
    assert onbox.revert(package, NAME).state == "unknown"
    assert contents(package) == before


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.pain("P39")
def test_apply_and_revert(package: Path, ending: bytes) -> None:
    original = GATED.replace(b"\n", ending)
    runner(package).write_bytes(original)
    runner(package).chmod(0o640)
    before = contents(package)
    assert onbox.state(package, NAME).state == "gated"
    assert onbox.apply(package, NAME).state == "patched"
    assert runner(package).stat().st_mode & 0o777 == 0o640
    patched = contents(package)
    assert len(patched) == 2
    assert onbox.apply(package, NAME).state == "patched"
    assert contents(package) == patched
    assert onbox.revert(package, NAME).state == "gated"
    assert contents(package) == before


def test_only_the_one_line_changes(package: Path) -> None:
    onbox.apply(package, NAME)
    old, new = GATED.splitlines(), runner(package).read_bytes().splitlines()
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [
        (
            b'            # "flashinfer_cutlass",',
            b'            "flashinfer_cutlass",  # gpubox: flashinfer-cutlass-autotune',
        )
    ]


def test_a_hard_linked_copy_in_an_installer_cache_stays_as_it_was(package: Path, tmp_path: Path) -> None:
    cached = tmp_path / "cached.py"
    cached.hardlink_to(runner(package))
    onbox.apply(package, NAME)
    assert cached.read_bytes() == GATED


def test_absent(tmp_path: Path) -> None:
    assert onbox.state(None, NAME).state == "absent"
    with pytest.raises(onbox.RefusedError, match="not installed"):
        onbox.apply(None, NAME)


def test_opened_by_hand_counts_as_open(package: Path) -> None:
    runner(package).write_bytes(GATED.replace(b'# "flashinfer_cutlass"', b'"flashinfer_cutlass"'))
    assert onbox.apply(package, NAME).state == "upstream"


def test_moved_to_two_files_is_unknown(package: Path) -> None:
    (package / "srt/model_executor/other.py").write_bytes(GATED)
    assert onbox.state(package, NAME).state == "unknown"


@pytest.mark.pain("P39")
def test_a_reinstalled_package_is_patched_again(package: Path) -> None:
    onbox.apply(package, NAME)
    runner(package).write_bytes(GATED)
    assert onbox.state(package, NAME).state == "gated"
    assert onbox.apply(package, NAME).state == "patched"


def test_an_upgraded_package_drops_the_old_original(package: Path) -> None:
    onbox.apply(package, NAME)
    runner(package).write_bytes(b"# newer\n" + GATED)
    onbox.apply(package, NAME)
    onbox.revert(package, NAME)
    assert runner(package).read_bytes() == b"# newer\n" + GATED
    assert len(contents(package)) == 1


@pytest.mark.parametrize("damage", ["edited after", "original gone", "original damaged"])
def test_revert_refuses_what_it_cannot_give_back(package: Path, damage: str) -> None:
    onbox.apply(package, NAME)
    (kept,) = runner(package).parent.glob("*.gpubox-original-*")
    if damage == "edited after":
        runner(package).write_bytes(runner(package).read_bytes() + b"# more\n")
    if damage == "original gone":
        kept.unlink()
    if damage == "original damaged":
        kept.write_bytes(GATED + b"# more\n")
    before = contents(package)
    with pytest.raises(onbox.RefusedError, match="no original"):
        onbox.revert(package, NAME)
    assert contents(package) == before


def test_a_run_killed_after_the_copy_converges(package: Path) -> None:
    file = runner(package)
    (file.parent / f".{file.name}.gpubox-new").write_bytes(b"half")
    (file.parent / f"{file.name}.gpubox-original-{'0' * 64}").write_bytes(b"other")
    onbox.apply(package, NAME)
    assert len(contents(package)) == 2
    onbox.revert(package, NAME)
    assert contents(package) == {str(file): GATED}


@pytest.mark.parametrize("mode", list(py_compile.PycInvalidationMode))
def test_stale_bytecode_is_removed(package: Path, mode: py_compile.PycInvalidationMode) -> None:
    compiled = Path(str(py_compile.compile(str(runner(package)), invalidation_mode=mode, doraise=True)))
    assert not onbox.state(package, NAME).stale_bytecode
    onbox.apply(package, NAME)
    assert not compiled.exists()
    assert not onbox.state(package, NAME).stale_bytecode


def test_stale_bytecode_that_a_killed_run_left_is_removed(package: Path) -> None:
    onbox.apply(package, NAME)
    compiled = Path(
        str(py_compile.compile(str(runner(package)), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH))
    )
    compiled.write_bytes(compiled.read_bytes()[:8] + bytes(8) + compiled.read_bytes()[16:])
    assert onbox.state(package, NAME).stale_bytecode
    assert not onbox.apply(package, NAME).stale_bytecode
    assert not compiled.exists()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.pain("P39", "P86")
def test_real_releases(tmp_path: Path, release: str) -> None:
    state, file = RELEASES[release]
    with zipfile.ZipFile(wheel(release)) as archive:
        archive.extractall(tmp_path, [n for n in archive.namelist() if n.startswith("sglang/srt/model_executor/")])
    before = contents(tmp_path)
    found = onbox.state(tmp_path / "sglang", NAME)
    assert found.state == state
    assert str(found.file).endswith(f"sglang/srt/model_executor/{file}")
    assert onbox.apply(tmp_path / "sglang", NAME).state == ("patched" if state == "gated" else "upstream")
    onbox.revert(tmp_path / "sglang", NAME)
    assert contents(tmp_path) == before


def wheel(release: str) -> Path:
    """The release's wheel, fetched once into the cache; only read, never run."""
    folder = paths.cache() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    if found := sorted(folder.glob(f"sglang-{release}-*.whl")):
        return found[0]
    choice = ["--no-deps", "--only-binary=:all:", "--platform=manylinux_2_34_x86_64", "--python-version=3.11"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *choice, f"--dest={folder}", f"sglang=={release}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(
            f"the wheel of sglang {release} is not in {folder} and pip could not fetch it: {done.stderr[-200:]}"
        )
    return wheel(release)


def test_as_the_box_runs_it(package: Path, remote_python: str) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        path = {"PYTHONPATH": str(package.parent)}
        return sent.run("patch", *words, python=remote_python, flags=(), environment=path)

    (package / "__init__.py").write_text("raise SystemExit('must not be imported')")
    done = run("apply", NAME)
    assert (done.returncode, json.loads(done.stdout)[NAME]["state"]) == (0, "patched")
    runner(package).write_bytes(b"def should_run_flashinfer_autotune(): ...")
    assert json.loads(run("state", NAME).stdout)[NAME]["state"] == "unknown"
    refused = run("apply", NAME)
    assert refused.returncode == 1
    assert "nothing was changed" in refused.stderr
    assert run("apply", "other").returncode == 2


def test_unknown_names_are_refused_here() -> None:
    with pytest.raises(GpuboxError, match=f"some of: {NAME}"):
        patches.checked(["other"])


@pytest.mark.parametrize(
    ("wanted", "digest"),
    [
        ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ([NAME], "f820a199d9f1b208b0230f6f77673c37f350a4b113c8a3a5e2f2e1e881e316ff"),
    ],
)
def test_an_upgrade_of_gpubox_builds_no_venv_anew(wanted: list[str], digest: str) -> None:
    """The digests that boxes have: a patch gets a new revision only when what it writes changes."""
    assert patches.digest(wanted) == digest


def test_a_patch_that_writes_something_else_needs_a_new_revision() -> None:
    written = hashlib.sha256(GATE.patched(GATED)).hexdigest()
    assert (GATE.revision[:16], written) == (
        "f820a199d9f1b208",
        "300798348b45903816280e7e965a3bc015033c5d4c682046b1a8de38701ebf78",
    )
