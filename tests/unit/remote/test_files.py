"""Writing so that a killed run leaves the old file or the new one, whole and on the disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from gpubox.remote import files


def test_what_is_written_is_synced_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = os.fsync

    def sync(number: int) -> None:
        path = Path(f"/proc/self/fd/{number}").readlink()
        seen.append(f"{path.name} {path.stat().st_size if path.is_file() else ''} {(tmp_path / 'a').exists()}")
        real(number)

    monkeypatch.setattr(os, "fsync", sync)
    files.write(tmp_path / "a", b"12345", 0o600)
    assert seen == [".a.gpubox-new 5 False", f"{tmp_path.name}  True"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_nobody_else_can_read_it_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    real = Path.open

    def watched(path: Path, *words: Any, **more: Any) -> Any:
        modes.append(path.stat().st_mode & 0o777)
        return real(path, *words, **more)

    monkeypatch.setattr(Path, "open", watched)
    files.write(tmp_path / "a", b"secret", 0o600)
    assert modes == [0o600]


def test_a_leftover_is_written_over_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    files.beside_of(tmp_path / "a").symlink_to(tmp_path / "other")
    files.write(tmp_path / "a", b"new")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a", "other"]
    assert (tmp_path / "other").read_text() == "other"


def test_a_file_like_another(tmp_path: Path) -> None:
    (tmp_path / "like").touch(0o640)
    files.write(tmp_path / "a", b"", like=tmp_path / "like")
    assert (tmp_path / "a").stat().st_mode & 0o777 == (tmp_path / "like").stat().st_mode & 0o777


@pytest.mark.parametrize("before", [None, "elsewhere", "there"])
def test_links(tmp_path: Path, before: "str | None") -> None:
    if before:
        (tmp_path / "l").symlink_to(before)
    files.link(tmp_path / "l", "there")
    assert (tmp_path / "l").readlink() == Path("there")


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), ("{", 7), (None, 7)])
def test_json(tmp_path: Path, text: "str | None", value: object) -> None:
    if text:
        (tmp_path / "a").write_text(text)
    assert files.read_json(tmp_path / "a", 7) == value
