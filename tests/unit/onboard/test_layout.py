"""`gpubox init`: a whole project or nothing, and never over what is there."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubox.cli.init import command
from gpubox.onboard import layout
from gpubox.support import paths

WANTED = {
    ".gitignore",
    "README.md",
    "deploy.py",
    "group_data/all.py",
    "group_data/gpu_boxes.py",
    "group_data/hypervisors.py",
    "inventory/README.md",
    "profiles/README.md",
    "tests/conftest.py",
}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["new", "deep/er/new", "with space", "größe"])
def test_a_new_folder(tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / name)])
    assert done.exit_code == 0, done.output
    assert files(tmp_path / name) == WANTED
    for part in WANTED - {".gitignore"}:
        assert f"{tmp_path / name}/{part}\n" in done.output
    assert list((tmp_path / name).parent.iterdir()) == [tmp_path / name]


def test_an_empty_folder_stays_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    assert CliRunner().invoke(command, ["."]).exit_code == 0
    assert (tmp_path.stat().st_ino, files(tmp_path)) == (before, WANTED)
    assert paths.project() == tmp_path


@pytest.mark.parametrize(
    ("there", "argument", "told"),
    [
        (["a", "b"], "", "is not empty: a, b\n"),
        ([f"f{n}" for n in range(9)], "", "is not empty: f0, f1, f2, f3, f4, f5 and 3 more\n"),
        ([".git/x"], "", "is not empty: .git\n"),
        (["a"], "a", "a is a file"),
        (["a"], "a/b", "a is a file"),
        ([], "x" * 300, "File name too long"),
        ([], "a\0b", "null byte"),
    ],
)
def test_what_is_there_stays(tmp_path: Path, there: list[str], argument: str, told: str) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("kept")
    done = CliRunner().invoke(command, [f"{tmp_path}/{argument}"])
    assert (done.exit_code, told in done.output) == (1, True), done.output
    assert files(tmp_path) == set(there)


@pytest.mark.parametrize("argument", ["", "  "])
def test_no_name_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(command, [argument]).exit_code == 1
    assert files(tmp_path) == set()


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    done = CliRunner().invoke(command, [str(tmp_path / "link")])
    assert (done.exit_code, "leads nowhere" in done.output) == (1, True)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    folder = tmp_path / "new"
    if is_there:
        folder.mkdir()
    synced: list[int] = []

    def fsync(handle: int) -> None:
        synced.append(handle)
        if len(synced) > 4:
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", fsync)
    done = CliRunner().invoke(command, [str(folder)])
    assert (done.exit_code, "No space left on device" in done.output) == (1, True)
    assert list(tmp_path.rglob("*")) == ([folder] if is_there else [])


def test_the_projects_own_files_are_python_and_data_that_work(tmp_path: Path) -> None:
    texts = layout.texts()
    assert set(texts) == WANTED
    for name in texts:
        if name.endswith(".py"):
            compile(texts[name], name, "exec")
