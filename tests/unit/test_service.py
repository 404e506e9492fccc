"""A box's data in, its release out: what stands where, and in no other place."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpubox.hosts import Box
from gpubox.server.service import Service, service_of
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings

KEY = "hush-hush"


def service(name: str = "tiny-cpu", patches: tuple[str, ...] = (), **settings: Any) -> Service:
    wish = profile.load(name)
    patched = stack.load(wish.stack).model_copy(update={"patches": list(patches)})
    return service_of(Box("gpu01", BoxSettings(profile=name, **settings), wish, patched))


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    return str(file)


def test_a_key_is_in_two_files_for_root_and_nowhere_else(key_file: str) -> None:
    made = service(api_key_file=key_file)
    held = {file.path.rpartition("/")[2]: file.mode for file in made.files if KEY.encode() in file.data}
    assert held == {"api-key": "600", "config.yaml": "600"}
    assert KEY not in f"{made.argv} {made.environment} {made.probe} {made}"


def test_the_file_with_the_key_is_named_by_two_words(key_file: str) -> None:
    """SGLang passes over --config=FILE without a word."""
    words = service(api_key_file=key_file).argv
    assert words[words.index("--config") + 1] == f"{service(api_key_file=key_file).release.path}/config.yaml"
    assert not [word for word in words if word.startswith("--config=")]


def test_a_release_tells_what_it_was_made_from() -> None:
    made, patched = (service(patches=names).release for names in ((), ("flashinfer-cutlass-autotune",)))
    about = json.loads(made.files()["release.json"])["made_from"]
    assert (about["profile"], about["stack"], about["patches"]) == ("tiny-cpu", "sglang-0.5.23-cpu", "none")
    assert patched.made_from == {**about, "patches": "flashinfer-cutlass-autotune"}
    assert patched.venv != made.venv
