"""The doctor's words: stable JSON, exit codes, answers judged, records compared, bundles without secrets."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from rich.console import Console

from gpubox import inventory
from gpubox.bench import record
from gpubox.cli.doctor import command
from gpubox.doctor import ask, bundle, deep, judge
from gpubox.doctor.check import Check, exit_code
from gpubox.doctor.examine import Report
from gpubox.doctor.look import Looks
from gpubox.doctor.show import show
from gpubox.facts.answers import Answer
from gpubox.hosts import Box
from gpubox.remote import cuinit
from gpubox.rules.finding import Finding
from gpubox.server.outside import Outside
from gpubox.server.release import venv_path
from gpubox.server.service import recipe_of, venv_of
from gpubox.support.errors import CannotTellError


@pytest.fixture(scope="module")
def box() -> Box:
    return inventory.load().box("gpu01")


def answered(*lines: dict[str, Any]) -> Looks:
    return Looks({"ready": Answer(0, "\n".join(json.dumps(line) for line in lines))})


def named(folder: Path, name: str, tpot_ms: float, **more: Any) -> None:
    latency = record.Latency(median=tpot_ms)
    row = record.Row(concurrency=1, tpot_ms=latency)
    values = {"label": "gpu01", "server": record.Server(profile="tiny-cpu"), **more}
    (folder / name).mkdir(parents=True)
    record.save(record.Record(id=name, rows=[row], **values), folder / name / "record.json")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["pass", "pass"], 0),
        (["pass", "warn"], 0),
        (["pass", "unknown", "warn"], 2),
        (["unknown", "fail"], 1),
        ([], 0),
    ],
)
def test_exit_codes(statuses: list[Any], code: int) -> None:
    assert exit_code(Check("h", "x", status, "") for status in statuses) == code


def test_the_json_of_a_check_keeps_its_names() -> None:
    assert list(Check("h", "x", "fail", "f", "n", "c").as_json()) == ["host", "id", "status", "found", "needed", "cure"]


@pytest.mark.parametrize(
    ("event", "status", "said"),
    [
        ({"event": "ready", "at_s": 0.1}, "pass", "known answer"),
        ({"event": "failed", "cause": "the unit is failed"}, "fail", "the unit is failed"),
        ({"event": "cannot-tell", "cause": "no systemctl"}, "unknown", "no systemctl"),
    ],
)
def test_the_probes_last_event_is_the_answer(box: Box, event: dict[str, Any], status: str, said: str) -> None:
    check = ask.endpoint(box, answered({"event": "phase", "phase": "load"}, event))
    assert check.status == status
    assert said in check.found


def test_a_probe_that_says_nothing_cannot_be_told(box: Box) -> None:
    assert ask.endpoint(box, answered()).status == "unknown"


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (Outside("answers", "http://x:1 from this machine"), "pass", "from this machine"),
        (Outside("as asked", "the profile binds the server to 127.0.0.1"), "pass", "the profile binds"),
        (Outside("unknown", "the address is not known"), "unknown", "not known"),
        (Outside("silent", "http://x:1: refused", ("a firewall",)), "fail", "it answers on the box, not from here"),
    ],
)
def test_what_comes_back_from_outside(box: Box, found: Outside, status: str, said: str) -> None:
    check = ask.outside(box, found)
    assert (check.status, said in check.found) == (status, True)
    assert check.cure == ("perhaps a firewall" if status == "fail" else "")


DEEP: dict[str, Any] = {"basis": "list", "count": 0, "wrong": {}}


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({}, {}),
        ({"venv": {"count": 30, "wrong": {"lib/a.py": "emptied"}}}, {"deep.venv": "lib/a.py: emptied; and 29 more"}),
        ({"venv": None}, {"deep.venv": "it is not there"}),
        ({"packages": ["missing     /usr/local/cuda-13.1/bin/nvcc"]}, {"deep.packages": "missing"}),
        ({"loose": ["/var/lib/gpubox/jit/x is owned by user 7"]}, {"deep.owners": "is owned by user 7"}),
    ],
)
def test_the_deep_form(box: Box, changes: dict[str, Any], failed: dict[str, str]) -> None:
    venv = {**DEEP, **changes["venv"]} if changes.get("venv") else changes.get("venv", DEEP)
    trees = {venv_path(venv_of(box)): venv, deep._INSTALLER: DEEP}
    said = {"trees": trees, "loose": changes.get("loose", []), "packages": changes.get("packages", [])}
    recipe = recipe_of(box)
    assert recipe is not None
    digest = hashlib.sha256(recipe.data).hexdigest()
    answer = f"file\t{recipe.mode} root root\t{digest}\t{recipe.path}\n"
    looks = Looks({"deep": Answer(0, json.dumps(said)), "recipe": Answer(0, answer)})
    found = {check.id: check for check in deep.checks(box, looks, "deploy")}
    assert len(found) == 5
    assert {name for name, check in found.items() if check.status != "pass"} == set(failed)
    assert all(text in found[name].found for name, text in failed.items())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"trees": {}}'])
def test_a_deep_look_that_says_something_else_cannot_be_told(box: Box, text: str) -> None:
    with pytest.raises(CannotTellError):
        deep.checks(box, Looks({"deep": Answer(0, text)}), "deploy")


@pytest.mark.parametrize(("tpot_s", "status"), [(0.010, "pass"), (0.014, "pass"), (0.016, "warn")])
def test_speed_is_compared_with_the_newest_record(box: Box, tmp_path: Path, tpot_s: float, status: str) -> None:
    named(tmp_path, "20260101T000000Z-gpu01", 1.0)
    named(tmp_path, "20260301T000000Z-gpu01", 10.0)
    named(tmp_path, "20260401T000000Z-gpu09", 99.0, label="gpu09")
    named(tmp_path, "20260501T000000Z-gpu01", 99.0, server=record.Server(profile="other"))
    check = ask.performance(box, answered({"event": "ready"}, {"tpot_s": tpot_s}), tmp_path)
    assert check.status == status
    assert "20260301T000000Z-gpu01" in check.found


def test_without_a_record_it_says_how_to_make_one(box: Box, tmp_path: Path) -> None:
    check = ask.performance(box, answered({"event": "ready"}, {"tpot_s": 0.01}), tmp_path)
    assert (check.status, check.cure) == ("warn", "gpubox bench gpu01 makes one")


def test_without_an_answer_there_is_no_speed(box: Box, tmp_path: Path) -> None:
    assert ask.performance(box, answered({"event": "failed"}), tmp_path).status == "unknown"


def test_an_output_that_is_no_answer_cannot_be_told(box: Box) -> None:
    looks = Looks({name: Answer(0, "what?\n") for name in ("base", "cuda", "service")})
    for name in looks.answers:
        check = judge.told_or_not("h", name, lambda: judge._host(box, looks, None, ""))  # type: ignore[arg-type]  # not read
        assert check.status == "unknown"


@pytest.mark.parametrize(
    ("tries", "status", "said"),
    [
        ([{"code": 0, "s": 0.4}], "pass", "answers in 0.4 s"),
        ([{"code": 999, "s": 2.0}, {"code": 0, "s": 0.5}], "warn", "cuInit gave 999 in 2.0 s, 0 in 0.5 s"),
        ([{"code": 0, "s": 31.0}], "warn", "0 in 31.0 s"),
        ([{"code": 3, "s": 0.2}] * 3, "fail", "cuInit gave 3 in 0.2 s, 3 in"),
        ([{"code": None, "s": 60.0}] * 3, "fail", "cuInit gave none in 60.0 s"),
    ],
)
@pytest.mark.pain("P08", "P18")
def test_cuda_itself_is_started_and_now_and_then_is_not_always(
    tries: list[dict[str, Any]], status: str, said: str
) -> None:
    box = cast(Box, SimpleNamespace(name="gpu01", stack=SimpleNamespace(device="cuda")))
    looks = Looks({"cuinit": Answer(0, json.dumps({"tries": tries}))})
    check = judge._cuda_start(box, looks, cast(Any, None), "")
    assert (check.status, said in check.found) == (status, True)
    assert (check.cure != "") is (status != "pass")


@pytest.mark.pain("P18")
def test_the_start_of_cuda_is_tried_again_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count = f"import pathlib; p = pathlib.Path({str(tmp_path / 'n')!r}); n = int(p.read_text()) if p.exists() else 0; "
    monkeypatch.setattr(cuinit, "ONE", count + "p.write_text(str(n + 1)); print([999, 0][n - 1 if n else 1 // n])")
    cuinit.main([])
    assert [row["code"] for row in json.loads(capsys.readouterr().out)["tries"]] == [None, 999, 0]


def test_a_broken_rule_is_a_line_of_its_own() -> None:
    finding = Finding("memory-fit", "error", "h", "too big", "smaller", "change it", ())
    told = judge._rules("h", "static", [finding, Finding("x", "info", "h", "", "", "", ())])
    assert [(check.id, check.status) for check in told] == [("static.memory-fit", "fail")]


CHECKS = [
    Check("gpu01", "static", "pass", "no rule is broken"),
    Check("gpu01", "driver", "fail", "word " * 30, "a driver that answers", "run it " * 20),
]


def test_lines_fit_80_columns_of_a_terminal() -> None:
    out = io.StringIO()
    show(CHECKS, Console(file=out, force_terminal=True, width=80, color_system=None))
    assert [line for line in out.getvalue().splitlines() if len(line.rstrip()) > 80] == []
    assert "  FAIL    driver" in out.getvalue()


def test_a_pipe_gets_one_line_a_field_without_colour() -> None:
    out = io.StringIO()
    show(CHECKS, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert "\x1b" not in out.getvalue()
    assert len(lines) == 6
    assert lines[-1] == "1 pass, 1 fail"


def test_no_color_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    show(CHECKS, Console(file=out, force_terminal=True, width=80))
    assert "\x1b[31m" not in out.getvalue()
    assert "\x1b[1;31m" not in out.getvalue()


def test_neither_host_nor_all_is_a_question_back() -> None:
    assert "HOST or --all" in CliRunner().invoke(command, []).output


def test_a_bundle_tells_nobody_who_it_is_of(box: Box, tmp_path: Path) -> None:
    log = [
        "server_args=ServerArgs(api_key='hunter2', host='0.0.0.0')",
        "token hf_abcdefghijklmnop of root@gpu01 at 10.87.0.11, gateway 10.87.0.1, file /home/jane/x",
        "profile old-gpu01",
    ]
    checks = [Check("gpu01", "ssh", "pass", "10.87.0.11 answers")]
    path = tmp_path / "b.tar.gz"
    bundle.write([Report(box, checks, log)], path)
    with tarfile.open(path) as archive:
        texts = {m.name: archive.extractfile(m).read().decode() for m in archive.getmembers()}  # type: ignore[union-attr]  # files
    whole = "\n".join([*texts, *texts.values()])
    assert [word for word in ("hunter2", "hf_abc", "gpu01", "10.87", "jane") if word in whole] == []
    assert "0.0.0.0" in whole  # noqa: S104 - a text that is read
    assert json.loads(texts["gpubox-doctor/doctor.json"])["checks"][0]["host"] == "host-1"
    assert path.stat().st_mode & 0o777 == 0o600
