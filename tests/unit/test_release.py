"""What a release is called, and what lies in it."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from gpubox.server.release import HERE, Release, venv_digest
from gpubox.settings.stack import SourceBuild

RELEASE = Release(
    argv=["/var/lib/gpubox/venvs/v/bin/python3", "-m", "sglang.launch_server"],
    unit=f"EnvironmentFile=/var/lib/gpubox/releases/{HERE}/environment\n",
    environment=f'GPUBOX_RELEASE="{HERE}"\n',
    venv="0123456789abcdef",
    made_from={"profile": "tiny-cpu"},
)


@pytest.mark.parametrize(
    "change",
    [
        {"argv": ["other"]},
        {"environment": "other"},
        {"venv": "other"},
        {"api_key": "x"},
        {"revision": "a" * 40},
    ],
)
def test_what_changes_the_digest(change: dict[str, object]) -> None:
    assert replace(RELEASE, **change).digest != RELEASE.digest  # type: ignore[arg-type]  # one field each


@pytest.mark.parametrize(
    "change", [{"made_from": {"profile": "other"}}, {"unit": "Restart=no"}, {"probe": {"timeout_s": 1}}]
)
def test_what_needs_no_restart_does_not(change: dict[str, object]) -> None:
    assert replace(RELEASE, **change).digest == RELEASE.digest  # type: ignore[arg-type]  # one field each


def test_the_files_name_themselves_and_are_vouched_for() -> None:
    release = replace(RELEASE, api_key="sekret", probe={"api_key_file": f"/x/{HERE}/api-key"})
    files = release.files()
    about = json.loads(files["release.json"])
    digest = about["digest"]
    assert sorted(files) == ["api-key", "argv.json", "config.yaml", "environment", "probe.json", "release.json", "unit"]
    assert list(files)[-1] == "release.json"
    assert json.loads(files["probe.json"]) == {"api_key_file": f"/x/{digest}/api-key"}
    assert files["config.yaml"] == b'api-key: "sekret"\n'
    assert "sekret" not in repr(release)
    assert files["environment"] == f'GPUBOX_RELEASE="{digest}"\n'.encode()
    assert HERE.encode() not in b"".join(files.values())
    assert b"sekret" not in files["release.json"]
    assert about["files"] == {n: sha256(c).hexdigest() for n, c in files.items() if n != "release.json"}


def test_a_venv_is_called_after_all_that_is_in_it() -> None:
    build = SourceBuild(package="p", version="1", sha256="0" * 64, cuda="13.1")
    ways = [
        venv_digest([b"a"], "3.11", [], ""),
        venv_digest([b"b"], "3.11", [], ""),
        venv_digest([b"a", b"b"], "3.11", [], ""),
        venv_digest([b"a"], "3.12", [], ""),
        venv_digest([b"a"], "3.11", [build], ""),
        venv_digest([b"a"], "3.11", [], "patched"),
    ]
    assert len(set(ways)) == len(ways)
