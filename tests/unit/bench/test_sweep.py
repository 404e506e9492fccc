"""What a record says of the facts that judged its run."""

from pathlib import Path

import pytest

from gpubox.bench import sweep


def _digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    monkeypatch.setattr(sweep, "__file__", str(folder / "bench" / "sweep.py"))
    return sweep.catalogue_digest()


@pytest.mark.parametrize("name", ["cards.yaml", "releases/0.5.23.json"])
def test_every_file_of_the_catalogue_counts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "catalog"
    assert _digest(tmp_path, monkeypatch) is None
    (folder / "releases").mkdir(parents=True)
    (folder / "cards.yaml").write_text("a: 1\n")
    (folder / "releases" / "0.5.23.json").write_text("{}")
    before = _digest(tmp_path, monkeypatch)
    assert before is not None
    (folder / "code.py").write_text("")
    assert _digest(tmp_path, monkeypatch) == before
    (folder / name).write_text("{b: 2}")
    assert _digest(tmp_path, monkeypatch) != before


def test_a_file_that_moved_is_another_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "a.yaml").write_text("x: 1\n")
    before = _digest(tmp_path, monkeypatch)
    (tmp_path / "catalog" / "a.yaml").rename(tmp_path / "catalog" / "b.yaml")
    assert _digest(tmp_path, monkeypatch) != before
