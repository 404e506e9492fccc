"""The program that reads everything, and what it takes for another's."""

import json
import os
from pathlib import Path

import pytest

from gpubox.remote import deep
from tests.unit import sent


def test_what_others_may_write_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a/open").touch()
    (tmp_path / "a/open").chmod(0o666)
    (tmp_path / "a/.lock").touch()
    (tmp_path / "a/.lock").chmod(0o666)
    (tmp_path / "link").symlink_to("/nowhere")
    tmp_path.chmod(0o700)
    assert deep.loose_below(tmp_path) == [f"{tmp_path}/a/open may be written by others (666)"]
    assert f"{tmp_path} is owned by user {os.getuid()}" in deep.loose_below(tmp_path, owner=12345)


DPKG = """#!/bin/sh
case $1 in
--verify) shift; echo "$@" >{folder}/names
    printf '??5?????? c /etc/cuda.conf\\nmissing     /usr/local/cuda/bin/nvcc\\n??5??????   /usr/local/cuda/lib/x.so\\n'
    exit 1 ;;
*) printf 'ii \\tcuda-nvcc-13-1\\nhi \\tlibnvidia-ml1\\nrc \\tcuda-gone\\nii \\tbash\\n' ;;
esac
"""


@pytest.fixture
def dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("dpkg", "dpkg-query"):
        (tmp_path / name).write_text(DPKG.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_packages_are_verified_but_for_their_settings(dpkg: Path) -> None:
    assert deep.verified("^(cuda-|libnv)") == [
        "missing     /usr/local/cuda/bin/nvcc",
        "??5??????   /usr/local/cuda/lib/x.so",
    ]
    assert (dpkg / "names").read_text() == "cuda-nvcc-13-1 libnvidia-ml1\n"


def test_a_dpkg_that_fails_is_told(dpkg: Path) -> None:
    (dpkg / "dpkg").write_text("#!/bin/sh\necho locked >&2; exit 2\n")
    assert deep.verified("^cuda-")[0].startswith("cannot tell: ")


def test_as_a_box_runs_it(tmp_path: Path, dpkg: Path, remote_python: str) -> None:
    given = {"trees": [str(tmp_path / "none")], "own": [], "packages": "^x"}
    done = sent.run("deep", given=given, python=remote_python, environment={"PATH": f"{dpkg}:/usr/bin:/bin"})
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"trees": {str(tmp_path / "none"): None}, "loose": [], "packages": []}
