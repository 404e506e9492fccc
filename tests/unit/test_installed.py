"""gpubox installed from its wheel: everything that it reads is in there, and it runs from any folder."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from gpubox.support import paths

ROOT = paths.root()
DATA = "gpubox/_data"
SHIPPED = (
    "deploy.py",
    "group_data",
    "profiles",
    "requirements-uv.txt",
    "stacks",
    "tasks",
    "templates",
    "tests/acceptance",
)
HOOK = """
import os, sys
log = open(os.environ["OPENED"], "a")
def told(event, given):
    if event == "open" and isinstance(given[0], str):
        log.write(given[0] + "\\n")
sys.addaudithook(told)
"""
"""A sitecustomize.py that keeps the names of all files that the program opens."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}\n`make venv` brings hatchling"
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as an installer lays it out; the packages that it needs are those of this environment."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (folder / "sitecustomize.py").write_text(HOOK)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


def run(site: Path, cwd: Path, *words: str, module: str = "gpubox.cli") -> subprocess.CompletedProcess[str]:
    """The installed program. No file of the checkout may be opened on the way."""
    opened = cwd / ".opened"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUBOX_")}
    environment = {**kept, "PYTHONPATH": str(site), "OPENED": str(opened), "COLUMNS": "200"}
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    names = {Path(name) for name in opened.read_text().splitlines()}
    opened.unlink()
    assert any(name.is_relative_to(site / "gpubox") for name in names)

    from_checkout = {name for name in names if name.is_relative_to(ROOT)}
    assert {name for name in from_checkout if not name.is_relative_to(ROOT / ".venv")} == set()
    return done


def checkout_files(part: str) -> set[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", part]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if (ROOT / name).is_file()}


def test_the_wheel_holds_every_file_of_what_is_shipped(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        there = set(archive.namelist())
    wanted = checkout_files("gpubox")
    for part in SHIPPED:
        wanted |= {f"{DATA}/{name}" for name in checkout_files(part)}
    assert wanted - there == set()
    assert {name for name in there if "__pycache__" in name or name.endswith(".pyc")} == set()


def test_every_part_that_is_asked_for_by_name_is_shipped() -> None:
    """`paths.root() / "x"` somewhere in the program means that x is in the wheel; tests/unit tells a checkout apart."""
    asked = subprocess.run(
        ["git", "grep", "-hoE", r'(paths\.)?root\(\) / "[^"]+"', "--", "gpubox", "tasks"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    named = {line.split('"')[1] for line in asked}
    assert named - {part.split("/")[0] for part in SHIPPED} == {"docs"}  # `gpubox docs` says that it has none


def test_uv_is_the_same_in_the_lock_and_in_what_brings_it() -> None:
    pinned = (ROOT / "requirements-uv.txt").read_text().split()[0]
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["constraint-dependencies"] == [pinned]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("profiles", "show", "tiny-cpu"), "tiny-cpu: A tiny model"),
        (("profiles", "diff", "recorded/glm-5-lxc", "glm-5-nvfp4"), "shown"),
        (("onboard", "--help"), "Look at a machine"),
        (("lock", "--all", "--check"), "sglang-0.5.23-cpu: "),
        (("lab", "up", "--help"), "rtx-pro-6000-x8"),
        (("docs", "--output", "pages"), "pages, "),
        (("compare", "h200-uncapped-graph", "h200-cap64-graph"), "h200-cap64-graph"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_commands_run_from_any_folder(site: Path, elsewhere: Path, words: tuple[str, ...], told: str) -> None:
    done = run(site, elsewhere, *words)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout


def test_the_shipped_profiles_are_listed(site: Path, elsewhere: Path) -> None:
    done = run(site, elsewhere, "profiles", "list", "--json")
    found = {one["name"]: one["origin"] for one in json.loads(done.stdout)}
    wanted = {
        path.relative_to(ROOT / "profiles").with_suffix("").as_posix() for path in ROOT.glob("profiles/**/*.yaml")
    }
    assert found == dict.fromkeys(wanted, "shipped")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check",), "no inventory in "),
        (("releases", "gpu-a"), "no inventory in "),
        (("onboard", "192.0.2.1"), "inventory to write the inventory to"),
        (("docs",), "--output FOLDER"),
        (("lock", "sglang-0.5.23-cpu"), "not yours to lock"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_where_there_is_nothing_it_says_so(site: Path, elsewhere: Path, words: tuple[str, ...], told: str) -> None:
    done = run(site, elsewhere, *words)
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr


def test_no_profiles_at_all_is_an_error(site: Path, elsewhere: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpubox.cli", "profiles", "list"]
    environment = {**os.environ, "PYTHONPATH": str(site), "OPENED": os.devnull, "GPUBOX_ROOT": str(tmp_path)}
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert f"no profiles below {tmp_path}/profiles" in done.stderr


@pytest.fixture
def project(site: Path, elsewhere: Path) -> Path:
    """What `gpubox init` makes, with the practice machine's box in it and two profiles."""
    assert run(site, elsewhere, "init", "boxes").returncode == 0
    folder = elsewhere / "boxes"
    for name, parent in (("mine", "tiny-cpu"), ("qwen3-8b-24gb", "glm-5-nvfp4")):
        text = f"summary: {name} of a person\nextends: {parent}\n"
        (folder / "profiles" / f"{name}.yaml").write_text(text)
    text = (ROOT / "inventory" / "lxc.py").read_text()
    (folder / "inventory" / "gpu.py").write_text(text.replace('"tiny-cpu"', '"mine"'))
    return folder


def test_a_persons_profiles_come_before_the_shipped_ones(site: Path, project: Path) -> None:
    done = run(site, project, "profiles", "list", "--json")
    whose = {one["name"]: one["origin"] for one in json.loads(done.stdout)}
    assert (whose["mine"], whose["glm-5-nvfp4"]) == ("yours", "shipped")
    assert whose["qwen3-8b-24gb"] == "yours, in place of the shipped one"
    assert "qwen3-8b-24gb of a person" in run(site, project, "profiles", "show", "qwen3-8b-24gb").stdout


def test_a_project_is_judged_and_loaded_where_a_person_stands(site: Path, project: Path) -> None:
    done = run(site, project, "check")
    assert (done.returncode, "1 box" in done.stdout) == (0, True), done.stdout + done.stderr
    done = run(site, project, "inventory/gpu.py", "debug-inventory", module="pyinfra")
    assert "/root/ml-env" in done.stdout + done.stderr  # from group_data


def test_a_project_asks_the_shipped_acceptance_tests_and_its_own(site: Path, project: Path) -> None:
    (project / "tests" / "test_mine.py").write_text("def test_mine(host): pass\n")
    for asked, shipped in (("tests/", True), (".", True), ("tests/test_mine.py", False)):
        done = run(site, project, asked, "--collect-only", "-q", "-p", "no:cacheprovider", module="pytest")
        assert done.returncode == 0, done.stdout
        assert ("test_metrics_are_there" in done.stdout, "test_mine" in done.stdout) == (shipped, True)
