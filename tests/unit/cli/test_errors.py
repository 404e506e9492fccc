"""Errors of every command: one form with `--json`, the same exit codes, and paths tried before anything begins."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from gpubox import cli, inventory
from gpubox.cli import main
from gpubox.support.errors import CannotTellError, GpuboxError


def call(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def error(result: Result) -> dict[str, str]:
    said = json.loads(result.stdout)
    assert said.keys() == {"error", "exit_code"}
    assert said["error"].keys() == {"found", "needed", "todo"}
    assert said["exit_code"] == result.exit_code
    return dict(said["error"])


@pytest.mark.parametrize(
    ("words", "code", "found"),
    [
        (["doctor", "nobody"], 1, "no GPU box 'nobody'"),
        (["doctor"], 2, "give a HOST or --all"),
        (["check", "--nope"], 2, "No such option"),
        (["nonsense"], 2, "No such command"),
        (["compare"], 2, "two runs at least"),
        (["profiles", "show", "nope"], 1, "no profile named 'nope'"),
        (["check", "--inventory", "/no/such"], 1, "no inventory /no/such"),
        (["doctor", "gpu01", "--bundle", "/no/such/folder/x"], 1, "there is no folder /no/such/folder"),
        (["bench", "gpu01", "--runs", "/dev/null"], 1, "--runs /dev/null"),
    ],
)
def test_an_error_is_json_where_json_was_asked_for(words: list[str], code: int, found: str) -> None:
    result = call(*words, "--json")
    assert found in error(result)["found"]
    assert result.exit_code == code
    assert result.stderr == ""
    for_people = call(*words)
    assert for_people.exit_code == code
    assert found in for_people.stderr
    assert for_people.stdout == ""


@pytest.mark.parametrize(
    ("raised", "code", "parts"),
    [
        (GpuboxError("a", "b", "c"), 1, ("a", "b", "c")),
        (CannotTellError("a"), 2, ("a", "", "")),
        (click.FileError("f", "hint"), 1, ("Could not open file 'f': hint", "", "")),
        (KeyboardInterrupt(), 1, ("interrupted before it was done", "", "")),
    ],
)
def test_every_kind(raised: BaseException, code: int, parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(inventory, "read", fail)
    result = call("check", "--json")
    assert (tuple(error(result).values()), result.exit_code) == (parts, code)


def test_no_error_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise GpuboxError("https://jane:hunter2@proxy said no", "--api-key or a token", "not ghp_hunter2hunter2")

    monkeypatch.setattr(inventory, "read", fail)
    for result in (call("check"), call("check", "--json")):
        assert "hunter2" not in result.output
        assert "--api-key or a token" in result.output


def test_a_mistake_of_ours_is_told_and_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "read", lambda _: 1 / 0)
    result = call("check", "--json")
    assert "ZeroDivisionError" in error(result)["found"]
    assert isinstance(result.exception, ZeroDivisionError)


def test_json_for_another_program_is_not_ours() -> None:
    result = call("bench", "--local", "--url", "http://x", "--", "--json")
    assert "--local needs" in result.stderr
    assert result.stdout == ""


def test_a_good_end_is_as_before() -> None:
    result = call("profiles", "list", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert isinstance(json.loads(result.stdout), list)
    assert call("--version").exit_code == 0


def _outputs(command: click.Command, path: str = "") -> list[tuple[str, Any]]:
    """Every option of every command that may name a file or folder."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        names = command.list_commands(context)
        return [
            pair for name in names for pair in _outputs(command.get_command(context, name) or command, f"{path} {name}")
        ]
    return [(f"{path} {one.opts[0]}".strip(), one) for one in command.params if isinstance(one.type, click.Path)]


WRITTEN = {"bench --runs", "docs --output", "doctor --bundle", "onboard --inventory", "report --output"}
READ = {
    *(f"{name} --inventory" for name in ("ask", "bench", "check", "diff", "doctor", "releases", "rollback")),
    *("bench --python", "catalog extract --wheel", "compare --runs", "onboard --api-key-file"),
    *("onboard --cuda-keyring", "onboard --key", "onboard --known-hosts", "report --runs"),
}


def test_every_path_of_the_command_line_is_one_of_these() -> None:
    """A new one belongs into one of the two sets, and so into one of the tests below."""
    assert {name for name, _ in _outputs(cli.main)} == WRITTEN | READ


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No host is asked, and nothing is started."""
    monkeypatch.setattr("subprocess.run", lambda *a, **k: pytest.fail(f"{a} was run"))
    monkeypatch.setattr("subprocess.Popen", lambda *a, **k: pytest.fail(f"{a} was started"))


_FOLDERS = {"bench --runs", "docs --output"}
_NO_JSON = {"docs", "report"}
_OTHERS = {
    "bench": ["gpu01"],
    "docs": [],
    "doctor": ["gpu01"],
    "onboard": ["10.0.0.1", "--yes"],
    "report": ["h200-glm"],
}


@pytest.mark.parametrize("name", sorted(WRITTEN))
@pytest.mark.parametrize("kind", ["folder of a file", "wrong kind"])
@pytest.mark.usefixtures("untouched")
def test_what_cannot_be_written_is_said_before_anything_is_asked(name: str, kind: str, tmp_path: Path) -> None:
    command, option = name.split(" ")
    (tmp_path / "file").touch()
    wrong = tmp_path / "file" if name in _FOLDERS else tmp_path
    path = tmp_path / "file" / "x" if kind == "folder of a file" else wrong
    result = call(command, *_OTHERS[command], option, str(path), "--json")
    if command in _NO_JSON:
        result = call(command, *_OTHERS[command], option, str(path))
        assert str(tmp_path) in result.stderr
    else:
        assert str(tmp_path) in error(result)["found"]
    assert result.exit_code == 1


@pytest.mark.parametrize("name", sorted(READ))
@pytest.mark.parametrize("kind", ["missing", "folder", "bytes"])
@pytest.mark.usefixtures("untouched")
def test_what_cannot_be_read_is_an_error_and_no_traceback(name: str, kind: str, tmp_path: Path) -> None:
    *command, option = name.split(" ")
    (tmp_path / "bytes").write_bytes(b"\x00\xff\xfe")
    path = {"missing": tmp_path / "no/such", "folder": tmp_path, "bytes": tmp_path / "bytes"}[kind]
    arguments = {
        "onboard": ["10.0.0.1:x"],
        "compare": ["a", "b"],
        "bench": ["--local", "--url", "u"] if option == "--python" else ["gpu01"],
        "diff": ["gpu01", "a", "b"],
        "catalog": ["0.5.23", "--check"],
        "report": ["nope"],
        "check": [],
    }.get(command[0], ["gpu01"])
    result = call(*command, *arguments, option, str(path))
    assert result.exit_code in {1, 2}
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr
