"""What the commands about releases say of a box."""

import json

import pytest
from click.testing import CliRunner

from gpubox.cli import releases
from gpubox.cli.diff import changed_files, described
from gpubox.facts.release import Releases
from gpubox.server import remote
from gpubox.support.errors import GpuboxError

ONE = {
    "digest": "aa11",
    "venv": "v1",
    "revision": None,
    "made_from": {"profile": "p"},
    "files": {"api-key": "1"},
    "argv": ["/v1/bin/python3", "-m", "sglang.launch_server", "--tp", "8", "--config", "/r/aa11/config.yaml", "--x"],
    "environment": ['A="b"', 'GPUBOX_RELEASE="aa11"', "HF_TOKEN=(secret)"],
}


def test_a_release_in_lines() -> None:
    assert described(ONE) == [
        "profile: p",
        "venv: v1",
        "model revision: None",
        "/v1/bin/python3",
        "-m sglang.launch_server",
        "--tp 8",
        "--config /r/(release)/config.yaml",
        "--x",
        'A="b"',
        'GPUBOX_RELEASE="(release)"',
        "HF_TOKEN=(secret)",
    ]


def test_a_key_differs_without_being_shown() -> None:
    assert changed_files(ONE, {**ONE, "files": {"api-key": "2"}}) == ["the API key differs"]
    assert changed_files(ONE, ONE) == []


def test_json_holds_no_digest_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "state", lambda _: Releases(current="aa11", releases=(dict(ONE),)))
    told = CliRunner().invoke(releases.command, ["gpu01", "--json"])
    assert json.loads(told.output)["releases"][0]["made_from"] == {"profile": "p"}
    assert "api-key" not in told.output


@pytest.mark.parametrize(
    ("name", "digest"), [("current", "aa11"), ("previous", "ab22"), ("ab", "ab22"), ("aa11", "aa11")]
)
def test_names_of_releases(name: str, digest: str) -> None:
    found = Releases(current="aa11", previous="ab22", releases=({"digest": "aa11"}, {"digest": "ab22"}))
    assert found.named(name) == digest


@pytest.mark.parametrize("name", ["a", "c", "previous"])
def test_a_name_of_none_or_several(name: str) -> None:
    with pytest.raises(GpuboxError, match="one of: aa11, ab22"):
        Releases(current="aa11", releases=({"digest": "aa11"}, {"digest": "ab22"})).named(name)
