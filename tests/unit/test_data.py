"""Settings: what people write, and what they are told when it cannot be used."""

from pathlib import Path
from typing import Any

import pytest

from gpubox.settings.host import BoxSettings
from gpubox.settings.profile import Profile
from gpubox.support.data import read_yaml, validated
from gpubox.support.errors import GpuboxError

PROFILE: dict[str, Any] = {"name": "x", "summary": "s", "stack": "s", "purpose": "latency", "flags": {}}


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
        ({"profile": "x", "gpus": "0,1"}, "gpus: input should be 'all' or a valid list, found '0,1' (str)"),
        ({"profile": "x", True: 1}, "(whole): a key that is True (bool): "),
        ({"profile": "x", "cuda": {"exact": {8: "1"}}}, "cuda.exact: a key that is 8 (int): "),
        ({"profile": "x", "cuda": {"exact": {None: "1"}}}, "cuda.exact: a key that is None (NoneType): "),
        ({"profile": "x", "cuda": {"exact": {"a": 1.5}}}, "cuda.exact.a: input should be a valid string, found 1.5"),
        ({"profile": "x", "cuda": {"exact": {"a": True}}}, "in quotes"),
    ],
)
def test_wrong_settings_name_key_and_accepted_values(value: dict[str, Any], told: str) -> None:
    with pytest.raises(GpuboxError) as error:
        validated(BoxSettings, value, "lxc.py: gpu01")
    assert told in error.value.message
    assert error.value.message.startswith("lxc.py: gpu01: ")


def test_one_mistake_is_told_once_however_many_types_a_setting_takes() -> None:
    with pytest.raises(GpuboxError) as error:
        validated(Profile, {**PROFILE, "flags": {"port": {"a": 1}}}, "x.yaml")
    assert "1 setting" in error.value.message
    assert "flags.port: input should be a valid boolean, a valid integer, " in error.value.message


def test_two_mistakes_are_two_although_they_look_alike() -> None:
    with pytest.raises(GpuboxError, match="2 setting"):
        validated(Profile, {**PROFILE, "start_timeout_s": None, "stop_timeout_s": None}, "x.yaml")


def test_all_wrong_settings_are_told_at_once() -> None:
    with pytest.raises(GpuboxError, match="3 setting"):
        validated(BoxSettings, {"a": 1, "b": 2, "venv_path": "/x"}, "x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "key 'a' stands twice"),
        ("- a\n", "holds a list"),
        ("a: [", "is not YAML that can be used"),
        ("f:\n  tp: 8\n  tp: 4\n", "key 'tp' stands twice"),
        ("a: 1\na: 2\n", "line 2, column 1"),
        ("", "holds nothing"),
        ("f:\n\tport: 1\n", "line 2, column 1"),
        ("? [a, b]\n: 1\n", "is not YAML that can be used"),
        ("? {a: b}\n: 1\n", "is not YAML that can be used"),
        (f"port: {'9' * 5000}\n", "is not YAML that can be used"),
        ("a: " + "[" * 3000, "is not YAML that can be used"),
        ("port: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("summary: caf\u00e9\n".encode("latin-1"), "is not text in UTF-8"),
        (bytes(range(256)), "is not text in UTF-8"),
    ],
)
def test_yaml_that_cannot_be_used(tmp_path: Path, text: str | bytes, told: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(GpuboxError, match=r"x\.yaml") as error:
        read_yaml(file)
    assert told in error.value.message


def test_a_folder_is_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(GpuboxError, match="cannot be read"):
        read_yaml(tmp_path)


def test_keys_may_be_merged_in_and_the_own_ones_stand(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n")
    assert read_yaml(file)["b"] == {"x": 1, "y": 3}


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("a: 1")
    with pytest.raises(GpuboxError, match=r"there\.yaml"):
        read_yaml(tmp_path / "gone.yaml")
