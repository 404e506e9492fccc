"""A box's data in, its release out: what stands where, and in no other place."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

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


def test_what_binds_the_server_stands_in_the_unit_and_makes_another_release() -> None:
    """Only a start makes it true. Where nothing is given, unit and name are as before there was such a setting."""
    wish = profile.load("tiny-cpu")
    bound = wish.model_copy(update={"process": profile.Process(cpus="0-3", limits={"NOFILE": "2097152"})})
    settings, base = BoxSettings(profile="tiny-cpu"), stack.load(wish.stack)
    plain, made = (service_of(Box("gpu01", settings, one, base)).release for one in (wish, bound))
    old, new = plain.unit.splitlines(), made.unit.splitlines()
    assert [line for line in new if line not in old] == ["CPUAffinity=0-3", "LimitNOFILE=2097152"]
    assert new.index("LimitNOFILE=2097152") > new.index("LimitNOFILE=1048576")
    assert made.digest != plain.digest
    assert plain.digest == plain.__class__(**{**vars(plain), "process": ()}).digest


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpus": "all"},
        {"nice": 20},
        {"numa_policy": "near"},
        {"limits": {"FILES": "1"}},
        {"limits": {"NOFILE": "many"}},
        {"numa_policy": "bind"},
        {"numa_nodes": "0"},
        {"cpu_scheduling": "rr"},
    ],
)
def test_what_systemd_would_not_take_is_no_setting(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        profile.Process.model_validate(wrong)
