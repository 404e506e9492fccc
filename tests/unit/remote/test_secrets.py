"""What is a secret: one table of cases, through the definition and through every place that prints something."""

import io
import json
import string
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console

from gpubox import inventory, rules
from gpubox.bench.readers import serverlog
from gpubox.catalog import release
from gpubox.cli import profiles
from gpubox.cli.diff import described
from gpubox.doctor import bundle
from gpubox.doctor.check import Check
from gpubox.doctor.examine import Report
from gpubox.hosts import Box
from gpubox.onboard import files, probe
from gpubox.remote import secrets, servers, switch
from gpubox.remote.bench import recorded
from gpubox.server import readiness
from gpubox.settings import profile
from gpubox.support import paths

CASES = Path(__file__).parents[2] / "cases"
TABLE: dict[str, Any] = yaml.safe_load((CASES / "secrets.yaml").read_text())
PLAIN: dict[str, str] = TABLE["plain_names"]
TEXTS: list[tuple[str, str]] = [(said, shown) for said, shown in TABLE["texts"]]
HIDDEN = "hunter2"
"""The secret of the table's texts."""
A_SECRET = st.text(string.ascii_letters + string.digits + "-_.~+/=!$%*", min_size=6, max_size=40).filter(
    lambda word: word[0].isalnum() and any(char.isdigit() for char in word) and not word.isdigit()
)
NAMES = st.sampled_from(TABLE["secret_names"])
FEW = settings(max_examples=60, derandomize=True, deadline=None, database=None)


@pytest.mark.parametrize("name", TABLE["secret_names"])
def test_a_name_that_means_a_secret(name: str) -> None:
    assert secrets.is_secret_name(name)
    assert secrets.environment({name: "x"}) == {name: secrets.MASK}


def test_what_is_no_secret_is_shown() -> None:
    assert secrets.environment(PLAIN) == PLAIN
    assert secrets.data(PLAIN) == PLAIN
    assert recorded.server_args(dict(PLAIN)) == PLAIN


@pytest.mark.parametrize("value", TABLE["secret_values"])
@pytest.mark.parametrize("around", ["{}", "x {} y", "url=https://h/{}", "'{}',", '{{"a": "{}"}}', "a\n{}\nb"])
def test_a_value_that_looks_like_a_secret(value: str, around: str) -> None:
    said = around.format(value)
    shown = secrets.text(said)
    assert secrets.MASK in shown
    assert not [line for line in value.split("\n") if line in shown]
    assert not [line for line in value.split("\n") if line in "\n".join(secrets.lines(said.split("\n")))]
    assert value not in "".join(secrets.argv(["--x", said, f"--y={said}"]))
    assert secrets.environment({"MINE": said})["MINE"] != said


@pytest.mark.parametrize(("said", "shown"), TEXTS)
def test_a_text(said: str, shown: str) -> None:
    assert secrets.text(said) == shown
    assert secrets.text(shown) == shown


@pytest.mark.parametrize(("words", "shown"), TABLE["command_lines"])
def test_a_command_line(words: list[str], shown: list[str]) -> None:
    assert secrets.argv(words) == shown


@pytest.mark.parametrize("version", release.versions())
def test_no_plain_flag_of_sglang_is_hidden(version: str) -> None:
    """Also that no flag is an abbreviation of a secret one: `--ssl-keyfile` is a path."""
    known = release.load(version)
    hidden = {name for name in known.spellings if secrets.is_secret_flag(f"--{name}")}
    assert hidden == {"api-key", "admin-api-key", "ssl-keyfile-password"} & {*known.spellings}
    plain = [f"--{name}" for name in known.spellings if name not in hidden]
    assert secrets.argv(plain) == plain
    settings_of = [name.replace("-", "_") for name in known.spellings if name not in hidden]
    assert [name for name in settings_of if secrets.is_secret_name(name)] == []


@pytest.mark.parametrize("version", release.versions())
def test_variables_of_sglang_are_shown_but_for_those_that_hold_secrets(version: str) -> None:
    hidden = {name for name in release.load(version).environment if secrets.is_secret_name(name)}
    assert hidden <= {
        "SGLANG_DIFFUSION_SLACK_TOKEN",
        "SGLANG_PRECISION_HF_TOKEN",
        "SGLANG_S3_ACCESS_KEY_ID",
        "SGLANG_S3_SECRET_ACCESS_KEY",
    }


@FEW
@given(A_SECRET, NAMES, st.sampled_from([*secrets.FLAGS, "api-k", "token", "hub-password"]), st.text(max_size=8))
def test_a_secret_survives_nowhere(secret: str, name: str, flag: str, other: str) -> None:
    assume(secret not in other)
    words = ["python3", other, f"--{flag}", secret, f"--{flag}={secret}", f"{name}={secret}", "--port", "1"]
    assert secret not in " ".join(secrets.argv(words))
    assert secret not in str(secrets.environment({name: secret, "OTHER": f"{name}={secret}"}))
    assert secret not in json.dumps(secrets.data({"a": [{name: secret}, {"b": {name: [secret]}}]}))
    said = [
        f"{name}={secret}",
        f"{name}: '{secret}', x={other!r}",
        f"ServerArgs(model_path='x', {name}={secret!r}, tp_size=1)",
        json.dumps({"x": 1, name: secret, "y": [1]}),
        json.dumps(json.dumps({name: secret})),
        f"exec --{flag} {secret} --port 1",
        f"exec '--{flag}' '{secret}'",
        f"https://jane:{quote(secret, safe='')}@host/x",
        f"Authorization: Bearer {secret}",
    ]
    for line in said:
        shown = secrets.text(line)
        assert secret not in unquote(shown)
        assert secrets.text(shown) == shown
    assert secret not in "\n".join(secrets.lines([*said, other]))


@pytest.fixture
def box() -> Box:
    return inventory.load(paths.root() / "inventory" / "lxc.py").box("gpu01")


def _on_box(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argv: list[str], variables: dict[str, str]
) -> dict[str, Any]:
    """What the box says of a release with these, as `gpubox releases` and `gpubox diff` get it."""
    folder = tmp_path / "releases" / "aa11"
    folder.mkdir(parents=True)
    lines = [f'{name}="{value}"' for name, value in variables.items()]
    (folder / "environment").write_text("# Written by gpubox.\n" + "\n".join(lines) + "\n")
    (folder / "argv.json").write_text(json.dumps(argv))
    about: dict[str, Any] = {"digest": "aa11", "venv": "v", "made_from": {}, "revision": None, "files": {}}
    (folder / "release.json").write_text(json.dumps(about))
    arguments = switch.Arguments("sglang.service", root=str(tmp_path), units=str(tmp_path), proc=str(tmp_path))
    monkeypatch.setattr(switch, "_running", lambda arguments: None)
    return dict(switch.state(arguments)["releases"][0])


ARGV = ["/p", "--api-key", HIDDEN, "--x", f"https://jane:{HIDDEN}@h/", "--tokenizer-path", "/m"]
VARIABLES = {"HF_TOKEN": HIDDEN, "MINE": f"first\nhttps://jane:{HIDDEN}@h/", **PLAIN}


def test_releases_and_their_differences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = _on_box(monkeypatch, tmp_path, ARGV, VARIABLES)
    assert HIDDEN not in json.dumps(said)
    assert HIDDEN not in "\n".join(described({**said, "argv": ARGV, "environment": [f'HF_TOKEN="{HIDDEN}"']}))
    assert {f'{name}="{value}"' for name, value in PLAIN.items()} <= {*described(said)}


def test_what_is_seen_of_a_server_that_runs() -> None:
    words, flags = servers.masked(ARGV)
    assert HIDDEN not in str(words)
    assert flags == ["api-key", "x"]
    pairs = [f"{name}={value}" for name, value in VARIABLES.items()]
    kept, secret, _ = servers.environment(pairs, {})
    assert secret == ["HF_TOKEN", "MINE"]
    assert kept == {name: value for name, value in PLAIN.items() if not servers.SESSION.fullmatch(name)}


def test_processes_on_a_card() -> None:
    shown = probe._user("\t".join(["812", *ARGV]))
    assert HIDDEN not in shown
    assert shown.startswith("812 /p --api-key (secret)")


@pytest.mark.parametrize(("said", "shown"), TEXTS)
def test_what_a_failed_start_tells(said: str, shown: str) -> None:
    story = readiness.story({"event": "failed", "cause": said, "telling": [said], "log": [said]})
    assert HIDDEN not in story
    assert story.splitlines()[0] == shown.splitlines()[0]
    assert f"    | {shown}" in story


@pytest.mark.parametrize(("said", "shown"), TEXTS)
def test_lines_of_a_log_in_a_record(said: str, shown: str) -> None:
    assert recorded.log([said]) == [shown]
    found = serverlog.server(said)
    assert HIDDEN not in str(found)


def test_a_bundle(box: Box, tmp_path: Path) -> None:
    flags = {**box.profile.flags, "admin-api-key": HIDDEN}
    variables = {**VARIABLES, "MINE": f"https://jane:{HIDDEN}@h/"}
    told = replace(box, profile=box.profile.model_copy(update={"flags": flags, "environment": variables}))
    log = [said for said, _ in TEXTS]
    checks = [Check(box.name, "endpoint", "fail", said) for said in log]
    bundle.write([Report(told, checks, log)], tmp_path / "b.tar.gz")
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        texts = [archive.extractfile(member).read().decode() for member in archive]  # type: ignore[union-attr]  # files
    whole = "\n".join(texts)
    assert HIDDEN not in whole
    assert "TOKENIZERS_PARALLELISM: '1'" in whole


def test_profiles_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    one = profile.load(profile.names()[0])
    flags = {**one.flags, "api-key": HIDDEN}
    told = one.model_copy(update={"flags": flags, "environment": {"HF_TOKEN": HIDDEN, "TOKENIZERS_PARALLELISM": "1"}})
    monkeypatch.setattr(profile, "load", lambda name: told)
    for words in (
        ["show", "x"],
        ["show", "x", "--json"],
        ["diff", "x", "y", "--all"],
        ["diff", "x", "y", "--all", "--json"],
    ):
        output = CliRunner().invoke(profiles.command, words).output
        assert HIDDEN not in output
        assert "TOKENIZERS_PARALLELISM" in output


def test_a_file_that_is_about_to_be_written(tmp_path: Path) -> None:
    out = io.StringIO()
    for number, (said, _) in enumerate(TEXTS):
        files.diff(files.Change(tmp_path / f"{number}.py", f"{said}\n"), Console(file=out, width=200))
    assert HIDDEN not in out.getvalue()


def test_findings_of_the_rules(box: Box) -> None:
    flags = {**box.profile.flags, "api-key": HIDDEN, "tp-size": 1}
    told = replace(
        box, profile=box.profile.model_copy(update={"flags": flags, "environment": {"HF_TOKEN": HIDDEN, **PLAIN}})
    )
    found = rules.check(told)
    assert HIDDEN not in str(found)
    named = [one.found for one in found if one.rule == "secret-in-profile"]
    assert named == ["--api-key holds a secret", "environment variable HF_TOKEN holds a secret"]
