"""Settings: what people write, and what they are told when it cannot be used."""

from pathlib import Path
from typing import Any

import pytest

from gpubox.data import read_yaml, validated
from gpubox.errors import GpuboxError
from gpubox.settings import BoxSettings


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({}, "profile: field required"),
        ({"profile": "x", "venvpath": "/x"}, "venvpath: unknown key; did you mean venv_path?"),
        ({"profile": "x", "cuda": {"tolkits": ["12.8"]}}, "cuda.tolkits: unknown key; did you mean toolkits?"),
        ({"profile": "x", "cuda": {"toolkits": "12.8"}}, "cuda.toolkits: input should be a valid list, found '12.8'"),
        ({"profile": "x", "cuda": {"toolkits": [12.8]}}, "cuda.toolkits.0: input should be a valid string, found 12.8"),
        ({"profile": "x", "cuda": {"toolkits": []}}, "cuda.toolkits: list should have at least 1 item"),
        ({"profile": "x", "venv_path": "ml-env"}, "venv_path: string should match pattern"),
        (
            {"profile": "x", "base": {"limits": {"nofile": "1024"}}},
            "base.limits.nofile: input should be a valid integer",
        ),
        ({"profile": "x", "container": {"kind": "docker", "name": "a"}}, "input should be 'lxc', 'proxmox' or 'incus'"),
        ({"profile": "x", "overrides": [{"rule": "r", "reason": "no"}]}, "overrides.0.reason: string should have at"),
    ],
)
def test_wrong_settings_name_key_and_accepted_values(value: dict[str, Any], told: str) -> None:
    with pytest.raises(GpuboxError) as error:
        validated(BoxSettings, value, "lxc.py: gpu01")
    assert told in error.value.message
    assert error.value.message.startswith("lxc.py: gpu01: ")


def test_all_wrong_settings_are_told_at_once() -> None:
    with pytest.raises(GpuboxError, match="3 setting"):
        validated(BoxSettings, {"a": 1, "b": 2, "venv_path": "/x"}, "x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "key 'a' stands twice"),
        ("- a\n", "holds a list"),
        ("a: [", "is not YAML"),
        ("f:\n  tp: 8\n  tp: 4\n", "key 'tp' stands twice"),
    ],
)
def test_yaml_that_cannot_be_used(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(GpuboxError, match=r"x\.yaml") as error:
        read_yaml(file)
    assert told in error.value.message


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("a: 1")
    with pytest.raises(GpuboxError, match=r"there\.yaml"):
        read_yaml(tmp_path / "gone.yaml")
