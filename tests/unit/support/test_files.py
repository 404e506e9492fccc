"""Files are written whole or not at all, and what cannot be written is said early."""

import errno
import os
from pathlib import Path

import pytest

from gpubox.support import files
from gpubox.support.errors import GpuboxError


def test_a_new_file_and_its_next_text(tmp_path: Path) -> None:
    path = tmp_path / "a"
    files.write(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    files.write(path, b"\0")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"\0", 0o640)
    files.write(path, "", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    files.write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("call", ["fsync", "fchmod"])
def test_a_full_disk_leaves_what_was_there(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(GpuboxError, match="a cannot be written: No space left on device"):
        files.write(path, "new")
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_the_folder_is_synced_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    real = os.fsync

    def watched(handle: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", watched)
    files.write(tmp_path / "a", "x")
    assert done[-1] == str(tmp_path)
    assert done[0].endswith(".gpubox-new")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", "is a folder"),
        ("no/such", "there is no folder"),
        ("file/x", "there is no folder"),
        ("pipe", "is no plain file"),
    ],
)
def test_a_file_that_cannot_be(path: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GpuboxError, match=found) as caught:
        files.check_file(tmp_path / path, "--output")
    assert caught.value.message.startswith("--output ")
    if path != "pipe":  # which a rename would replace
        with pytest.raises(GpuboxError, match="cannot be written"):
            files.write(tmp_path / path, "")


def test_what_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files.check_file(tmp_path / "file")
    files.check_file(tmp_path / "new")
    files.check_file(tmp_path / "a/b/new", makes_folders=True)
    files.check_folder(tmp_path / "a/b")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GpuboxError, match="file is no folder"):
        files.check_folder(tmp_path / "file/x", "--runs")
    with pytest.raises(GpuboxError, match="cannot be written"):
        files.make_folder(tmp_path / "file/x")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(GpuboxError, match="no right to write"):
        files.check_folder(tmp_path / "x")
