"""Damage to an environment's files: what is seen at once, what only by reading, what is no damage at all."""

import base64
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpubox.remote import tree, venv_state

SITE = "lib/python3.11/site-packages"
FILES = {
    f"{SITE}/pkg/__init__.py": b"import os\n",
    f"{SITE}/pkg/core.so": b"\x7fELF" * 100,
    f"{SITE}/pkg/include/a.h": b"#define A\n",
    f"{SITE}/pkg-1.dist-info/METADATA": b"Name: pkg\n",
    "bin/run": b"#!/bin/sh\n",
}


def record_row(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{os.path.relpath(name, SITE)},sha256={digest},{len(content)}"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """An environment of one package, with the marker that the build writes last, and no list."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    rows = [record_row(name, content) for name, content in FILES.items()]
    rows += ["pkg-1.dist-info/RECORD,,", "pkg/__pycache__/__init__.cpython-311.pyc,,", '"pkg/a,b.py",,']
    (tmp_path / SITE / "pkg-1.dist-info/RECORD").write_text("\n".join(rows) + "\n")
    (tmp_path / "bin/python3").symlink_to("/usr/bin/python3")
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    venv_state.made(tmp_path)
    later = tree._changed_ns(tmp_path / "gpubox.json")
    for path in tmp_path.rglob("*"):
        assert path.lstat().st_ctime_ns <= later
    next_tick(tmp_path)
    return tmp_path


def next_tick(root: Path) -> None:
    """The kernel's file times move in steps of milliseconds: what comes next must not have that of the marker."""
    clock = root.with_name("clock")
    clock.touch()
    while tree._changed_ns(clock) <= tree._changed_ns(root / "gpubox.json"):
        clock.touch()


@pytest.fixture
def listed(built: Path) -> Path:
    venv_state.finished(built)
    return built


def emptied(root: Path) -> None:
    (root / f"{SITE}/pkg/__init__.py").write_text("")


def longer(root: Path) -> None:
    with (root / f"{SITE}/pkg/include/a.h").open("a") as file:
        file.write("more\n")


def same_size(root: Path) -> None:
    (root / f"{SITE}/pkg/__init__.py").write_bytes(b"import 0s\n")


def removed(root: Path) -> None:
    (root / f"{SITE}/pkg/core.so").unlink()


def a_script(root: Path) -> None:
    (root / "bin/run").write_text("#!/bin/sh\nexit 1\n")


DAMAGE: dict[Callable[[Path], None], dict[str, str]] = {
    emptied: {f"{SITE}/pkg/__init__.py": "emptied"},
    longer: {f"{SITE}/pkg/include/a.h": "15 bytes, not 10"},
    same_size: {f"{SITE}/pkg/__init__.py": "another content"},
    removed: {f"{SITE}/pkg/core.so": "missing"},
    a_script: {"bin/run": "17 bytes, not 10"},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_seen_by_the_list(listed: Path, damage: Callable[[Path], None]) -> None:
    assert tree.compare(listed) == {"basis": "list", "count": 0, "wrong": {}}
    damage(listed)
    assert tree.compare(listed)["wrong"] == DAMAGE[damage]
    assert tree.compare(listed, deep=True)["wrong"] == DAMAGE[damage]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_seen_where_there_is_no_list_yet(built: Path, damage: Callable[[Path], None]) -> None:
    assert tree.compare(built) == {"basis": "records", "count": 0, "wrong": {}}
    damage(built)
    assert tree.compare(built)["wrong"] == DAMAGE[damage]
    assert not (built / tree.LIST).exists()


def test_only_reading_tells_a_change_that_hides_its_time(listed: Path) -> None:
    path = listed / f"{SITE}/pkg/__init__.py"
    before = path.stat()
    same_size(listed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert tree.compare(listed)["count"] == 0
    assert tree.compare(listed, deep=True)["wrong"] == {f"{SITE}/pkg/__init__.py": "another content"}


def test_what_is_no_damage(listed: Path) -> None:
    (listed / f"{SITE}/pkg/__pycache__").mkdir()
    (listed / f"{SITE}/pkg/__pycache__/__init__.cpython-311.pyc").write_bytes(b"x")
    (listed / f"{SITE}/pkg/core.so").touch()
    (listed / f"{SITE}/pkg/notes.txt").write_text("a person's")
    moved = listed.rename(listed.with_name("moved"))
    assert tree.compare(moved)["count"] == 0
    assert tree.compare(moved, deep=True)["count"] == 0


def test_new_code_is_told(listed: Path) -> None:
    (listed / f"{SITE}/sitecustomize.py").write_text("raise SystemExit\n")
    (listed / f"{SITE}/x.pth").write_text("import x\n")
    assert tree.compare(listed)["wrong"] == {f"{SITE}/sitecustomize.py": "new", f"{SITE}/x.pth": "new"}


def test_another_python_is_told(listed: Path) -> None:
    (listed / "bin/python3").unlink()
    (listed / "bin/python3").symlink_to("/opt/other/python3")
    assert list(tree.compare(listed)["wrong"]) == ["bin/python3"]


def test_a_folder_that_is_gone_takes_its_files_along(built: Path) -> None:
    shutil.rmtree(built / f"{SITE}/pkg/include")
    assert tree.compare(built)["wrong"] == {f"{SITE}/pkg/include/a.h": "missing"}


def test_a_record_may_name_what_was_never_there(built: Path) -> None:
    record = built / f"{SITE}/pkg-1.dist-info/RECORD"
    record.write_text(record.read_text() + record_row(f"{SITE}/never/there.py", b"x") + "\n")
    os.utime(built / "gpubox.json")
    next_tick(built)
    assert tree.compare(built)["count"] == 0


def test_two_packages_may_bring_the_same_file(built: Path) -> None:
    other = built / SITE / "other-2.dist-info"
    other.mkdir()
    (other / "RECORD").write_text(record_row(f"{SITE}/pkg/__init__.py", b"of the other\n") + "\n")
    os.utime(built / "gpubox.json")
    next_tick(built)
    assert tree.compare(built, deep=True)["count"] == 0


def test_a_file_that_a_patch_changed_is_left_to_the_patch(built: Path) -> None:
    path = built / f"{SITE}/pkg/__init__.py"
    path.with_name(f"{path.name}{tree._PATCHED}1234").write_bytes(path.read_bytes())
    path.write_text("patched\n")
    assert tree.compare(built)["count"] == 0
    venv_state.finished(built)
    path.write_text("damaged\n")
    assert list(tree.compare(built)["wrong"]) == [f"{SITE}/pkg/__init__.py"]


def test_a_restored_copy_is_only_wrong_where_it_is_empty(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_RESTORED", 2)
    for path in built.rglob("*"):
        if path.is_file() and path.name != "gpubox.json":
            path.touch()
    longer(built)
    emptied(built)
    assert tree.compare(built)["wrong"] == {f"{SITE}/pkg/__init__.py": "emptied"}


def test_many_are_counted_and_few_are_named(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "SHOWN", 2)
    for damage in DAMAGE:
        damage(listed)
    found = tree.compare(listed)
    assert (found["count"], len(found["wrong"])) == (4, 2)


def test_a_cut_list_vouches_for_nothing(listed: Path) -> None:
    (listed / tree.LIST).write_text("")
    assert tree.compare(listed)["count"] > 0
