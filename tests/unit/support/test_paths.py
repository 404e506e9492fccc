"""Where things are looked for: what a person has where they stand, then what is shipped."""

from pathlib import Path

import pytest

from gpubox import inventory
from gpubox.settings import profile, stack
from gpubox.support import paths
from gpubox.support.errors import GpuboxError

MINE = "summary: mine\nstack: own\npurpose: latency\nflags: {tp: 1}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GPUBOX_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """What an installed package sees: its data, and no checkout."""
    (folder / "_data").mkdir()
    monkeypatch.setattr(paths, "_INSTALLED", folder / "_data")
    return folder / "_data"


@pytest.mark.parametrize("part", ["inventory", "group_data", "profiles", "stacks"])
def test_a_folder_with_one_of_the_parts_is_a_project(here: Path, part: str) -> None:
    assert paths.project() == paths.root()
    (here / part).mkdir()
    assert paths.project() == here


def test_an_installed_program_stays_where_the_person_stands(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = installed(monkeypatch, tmp_path_factory.mktemp("site"))
    assert (paths.root(), paths.project()) == (data, here)


def test_one_folder_for_both(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "profiles").mkdir()
    monkeypatch.setenv("GPUBOX_ROOT", "/elsewhere")
    assert (paths.root(), paths.project()) == (Path("/elsewhere"), Path("/elsewhere"))
    assert paths.profile_folders() == [Path("/elsewhere/profiles")]


def test_a_current_folder_that_was_removed(here: Path) -> None:
    here.rmdir()
    with pytest.raises(GpuboxError, match="was removed"):
        paths.project()


def test_a_checkout_seen_through_a_link_has_one_folder_of_profiles(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "link").symlink_to(paths.root())
    monkeypatch.chdir(here / "link")
    assert paths.profile_folders() == [paths.root() / "profiles"]
    assert profile.origin("tiny-cpu") == "shipped"


def test_profiles_of_both(here: Path) -> None:
    shipped = profile.names()
    (here / "profiles" / "team").mkdir(parents=True)
    for name in ("team/own", "tiny-cpu"):
        (here / "profiles" / f"{name}.yaml").write_text(MINE)
    assert profile.names() == sorted([*shipped, "team/own"])
    assert profile.load("tiny-cpu").summary == "mine"
    assert profile.load("glm-5-nvfp4").name == "glm-5-nvfp4"
    with pytest.raises(GpuboxError) as error:
        profile.load("other")
    assert f"below {here}/profiles or {paths.root()}/profiles" in error.value.message


def test_a_profile_that_extends_itself_is_named(here: Path) -> None:
    (here / "profiles").mkdir()
    (here / "profiles" / "tiny-cpu.yaml").write_text("summary: mine\nextends: tiny-cpu\n")
    with pytest.raises(GpuboxError, match=r"tiny-cpu\.yaml extends itself"):
        profile.load("tiny-cpu")


def test_stacks_of_both(here: Path) -> None:
    shipped = stack.load("sglang-0.5.23-cpu")
    own = here / "stacks" / "mine"
    own.mkdir(parents=True)
    for path in shipped.folder.iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    assert {"mine", "sglang-0.5.23-cu130"} <= {*stack.names()}
    mine = stack.load("mine")
    assert mine.folder == own
    assert mine.payload() == shipped.payload()
    with pytest.raises(GpuboxError, match=r"no stack named 'other' below .* or "):
        stack.load("other")


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["gpu-a.py"], "gpu-a.py"),
        (["a.py", "lxc.py"], "lxc.py"),
        (["a.py", "_shared.py"], "a.py"),
        (["a.py", "README.md"], "a.py"),
    ],
)
def test_the_inventory_when_none_is_named(here: Path, there: list[str], found: str) -> None:
    (here / "inventory").mkdir()
    for name in there:
        (here / "inventory" / name).touch()
    assert inventory.default_path() == here / "inventory" / found


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (["inventory/a.py", "inventory/b.py"], "several inventories: a.py, b.py"),
        (["inventory/README.md"], "no inventory in .*\n.*\n.*gpubox onboard"),
        (["profiles/a.yaml"], "no inventory in .*\n.*\n.*gpubox init"),
    ],
)
def test_no_inventory_to_take(here: Path, there: list[str], told: str) -> None:
    for name in there:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).touch()
    with pytest.raises(GpuboxError) as error:
        inventory.default_path()
    assert error.match(told)


def test_group_data_are_those_that_pyinfra_reads(here: Path) -> None:
    (here / "group_data").mkdir()
    (here / "group_data" / "gpu_boxes.py").write_text('venv_path = "/srv/env"\n')
    (here / "inventory").mkdir()
    text = (paths.root() / "inventory" / "bare_metal.py").read_text()
    (here / "inventory" / "metal.py").write_text(text)
    boxes = inventory.read(inventory.default_path()).boxes.values()
    assert {box.settings.venv_path for box in boxes} == {"/srv/env"}
