"""Practice machine: what boxes keep of apt's downloads."""

from pathlib import Path

import pytest

from gpubox.lab import lifecycle, paths


def test_boxes_share_packages_and_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOX_LAB_DIR", str(tmp_path))
    lifecycle._apt_cache("gpu01", "gpu01")
    first, second = paths.cache() / "apt/gpu01", paths.cache() / "apt/gpu02"
    for name in ("a_1_all.deb", "lock", "partial/b_1_all.deb"):
        (first / name).write_text("")
    lifecycle._apt_cache("gpu02", "gpu01")
    assert sorted(path.name for path in second.rglob("*")) == ["a_1_all.deb", "partial"]
    lifecycle._apt_cache("gpu02", "gpu01")
