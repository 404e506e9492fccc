"""Switching releases on a box that is a folder, with a systemd that a test plays, and a run that is killed anywhere."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import pytest

from gpubox.remote import command, files, switch
from gpubox.remote.command import CommandError
from gpubox.remote.switch import Arguments, RefusedError
from gpubox.server.release import HERE, Release
from tests.unit import sent

UNIT = "sglang.service"


class Systemd:
    """Loads the unit's file at daemon-reload, and starts what it has loaded."""

    def __init__(self, root: Path) -> None:
        self.root, self.loaded, self.running = root, "", ""
        self.calls: list[str] = []
        self.broken = ""
        self.said: dict[str, str] = {}
        """More properties of the unit."""
        self.instead: list[str] = []
        """What a drop-in has it start in place of the release's command line."""

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        verb = command[1]
        self.calls += [verb] if verb != "show" else []
        if verb == self.broken:
            return subprocess.CompletedProcess(command, 1, "", "no such luck")
        if verb == "daemon-reload":
            self.loaded = (self.root / "units" / UNIT).read_text()
        if verb == "stop":
            self._run("")
        if verb == "start":
            self._run(self.loaded.split()[5])
        pid = "MainPID=100\nActiveState=active\n" if self.running else "MainPID=0\nActiveState=inactive\n"
        more = "".join(f"{name}={value}\n" for name, value in self.said.items())
        return subprocess.CompletedProcess(command, 0, pid + more, "")

    def _run(self, release: str) -> None:
        self.running = release
        process = self.root / "proc/100"
        process.mkdir(parents=True, exist_ok=True)
        (process / "environ").write_bytes(f"A=b\0GPUBOX_RELEASE={release}\0".encode())
        argv = json.loads((self.root / f"releases/{release}/argv.json").read_text()) if release else []
        (process / "cmdline").write_bytes("".join(f"{word}\0" for word in self.instead or argv).encode())


class Box:
    def __init__(self, root: Path, systemd: Systemd) -> None:
        self.root, self.systemd = root, systemd
        self.arguments = Arguments(UNIT, root=str(root), units=str(root / "units"), proc=str(root / "proc"))
        self.arguments = replace(self.arguments, system=str(root / "system"))
        self.arguments = replace(self.arguments, venv_link=str(root / "ml-env"))

    def made(self, name: str) -> str:
        """A release of that name with its venv; its digest."""
        unit = f"# Written by gpubox\nrelease {HERE} {name}\n"
        release = Release([name], unit, f"x {HERE}", f"venv-{name}", made_from={"profile": name})
        folder = self.root / f"releases/{release.digest}"
        folder.mkdir(parents=True)
        for file, content in release.files().items():
            (folder / file).write_bytes(content)
        (self.root / f"venvs/venv-{name}").mkdir(parents=True)
        return release.digest

    def do(self, act: Callable[[Arguments], None], digest: str = "", **more: Any) -> None:
        act(replace(self.arguments, digest=digest, **more))

    def serve(self, name: str) -> str:
        digest = self.made(name)
        self.do(switch.switch, digest)
        self.do(switch.verified, digest)
        return digest

    def state(self) -> dict[str, Any]:
        return switch.state(self.arguments)

    def names(self, folder: str) -> set[str]:
        return {path.name for path in (self.root / folder).iterdir() if path.is_dir()}


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    for name in ("units", "proc", "releases", "venvs"):
        (tmp_path / name).mkdir()
    systemd = Systemd(tmp_path)
    monkeypatch.setattr("gpubox.remote.command.subprocess.run", systemd)
    return Box(tmp_path, systemd)


def test_who_made_a_release_current_last_is_kept_with_it(box: Box) -> None:
    old, new = box.made("old"), box.made("new")
    box.do(switch.switch, old, by="ada@desk")
    box.do(switch.verified, old, by="another@desk")
    box.do(switch.switch, old, by="another@desk")  # a run that finds it current
    box.do(switch.switch, new, by="bob@desk")
    assert {release["digest"]: release["by"] for release in box.state()["releases"]} == {
        old: "ada@desk",
        new: "bob@desk",
    }
    box.do(switch.rollback, by="eve@desk")
    assert {release["digest"]: release["by"] for release in box.state()["releases"]}[old] == "eve@desk"
    box.do(switch.prune, keep=0)
    assert not list((box.root / "releases").glob(f"{new}*"))


def test_switch_then_nothing_to_do(box: Box) -> None:
    first = box.made("one")
    box.do(switch.switch, first)
    assert box.systemd.running == first
    assert (box.root / "ml-env").readlink() == box.root / "venvs/venv-one"
    assert (box.root / "current").resolve() == box.root / "releases" / first
    box.systemd.calls.clear()
    box.do(switch.switch, first)
    assert "start" not in box.systemd.calls
    assert "stop" not in box.systemd.calls
    assert box.state()["unit"] == box.state()["current"] == first


def test_only_what_answered_becomes_previous(box: Box) -> None:
    good, bad = box.serve("good"), box.made("bad")
    box.do(switch.switch, bad)
    newer = box.serve("newer")
    assert (box.state()["current"], box.state()["previous"]) == (newer, good)


def test_rollback(box: Box) -> None:
    oldest, older, bad = box.serve("oldest"), box.serve("older"), box.made("bad")
    box.do(switch.switch, bad)
    box.do(switch.rollback)
    assert (box.systemd.running, box.state()["current"], box.state()["previous"]) == (older, older, oldest)
    box.do(switch.rollback, bad)
    assert box.systemd.running == bad
    box.do(switch.rollback, oldest)
    assert (box.systemd.running, box.state()["previous"]) == (oldest, older)


def test_rollback_from_the_first_release_is_refused(box: Box) -> None:
    box.serve("only")
    before = box.state()
    with pytest.raises(RefusedError, match="no earlier release"):
        box.do(switch.rollback)
    assert box.state() == before


def without_its_venv(box: Box, new: str) -> None:
    (box.root / "venvs/venv-new").rmdir()
    box.do(switch.switch, new)


REFUSED: dict[str, Callable[[Box, str], None]] = {
    "no such release": lambda box, _: box.do(switch.switch, "0" * 16),
    "rollback to none": lambda box, _: box.do(switch.rollback, "0" * 16),
    "no venv": without_its_venv,
    "verified is not current": lambda box, new: box.do(switch.verified, new),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_old_one_serving(box: Box, case: str) -> None:
    old, new = box.serve("old"), box.made("new")
    before, calls = box.state(), list(box.systemd.calls)
    with pytest.raises(RefusedError):
        REFUSED[case](box, new)
    after = {**box.state(), "superfluous": before["superfluous"]}  # one case has taken the new one's venv away
    assert (after, box.systemd.calls, box.systemd.running) == (before, calls, old)


@pytest.mark.parametrize("damage", ["cut", "missing", "extra", "no release.json", "half a release.json", "other name"])
def test_a_damaged_release_is_refused(box: Box, damage: str) -> None:
    old, new = box.serve("old"), box.made("new")
    folder = box.root / f"releases/{new}"
    if damage == "cut":
        (folder / "unit").write_text("un")
    if damage == "missing":
        (folder / "environment").unlink()
    if damage == "extra":
        (folder / "more").touch()
    if damage == "no release.json":
        (folder / "release.json").unlink()
    if damage == "half a release.json":
        (folder / "release.json").write_text("{")
    if damage == "other name":
        new = folder.rename(folder.with_name("0" * 16)).name
    with pytest.raises(RefusedError):
        box.do(switch.switch, new)
    assert (box.state()["current"], box.systemd.running) == (old, old)


def test_what_a_killed_upload_left_is_no_damage(box: Box) -> None:
    new = box.made("new")
    (box.root / f"releases/{new}/unit.gpubox-new").touch()
    box.do(switch.switch, new)
    assert box.state()["runs"] == new


def test_a_release_that_comes_back_must_answer_anew(box: Box) -> None:
    old, new = box.serve("old"), box.serve("new")
    box.do(switch.switch, old)
    verified = {release["digest"]: bool(release["verified"]) for release in box.state()["releases"]}
    assert verified == {old: False, new: True}


def test_an_edited_unit_is_put_back_without_a_restart(box: Box) -> None:
    box.serve("one")
    (box.root / "units" / UNIT).write_text("# Written by gpubox\nRestart=no")
    assert box.state()["unit"] is None
    box.systemd.calls.clear()
    box.do(switch.switch, str(box.state()["current"]))
    assert box.systemd.calls == ["daemon-reload", "enable"]
    assert box.state()["unit"] == box.state()["current"]


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ({"LoadState": "loaded", "NeedDaemonReload": "no", "UnitFileState": "enabled"}, []),
        ({"LoadState": "loaded", "NeedDaemonReload": "yes", "UnitFileState": "enabled"}, ["daemon-reload"]),
        ({"LoadState": "not-found", "NeedDaemonReload": "no", "UnitFileState": ""}, ["daemon-reload", "enable"]),
        ({"LoadState": "loaded", "NeedDaemonReload": "no", "UnitFileState": "disabled"}, ["enable"]),
        ({}, ["daemon-reload", "enable"]),
    ],
)
@pytest.mark.pain("P97")
def test_systemd_reads_its_units_anew_only_where_one_changed(box: Box, said: dict[str, str], calls: list[str]) -> None:
    box.serve("one")
    box.systemd.calls.clear()
    box.systemd.said = said
    box.do(switch.switch, str(box.state()["current"]))
    assert box.systemd.calls == calls


def test_a_unit_of_others_is_kept_aside(box: Box) -> None:
    (box.root / "units" / UNIT).write_text("ExecStart=/opt/mine\n")
    box.serve("one")
    (kept,) = (box.root / "kept").iterdir()
    assert kept.read_text() == "ExecStart=/opt/mine\n"


@pytest.mark.parametrize("unit", ["[Service]\nExecStart=/usr/bin/other\n", None])
def test_drop_ins_go_aside_whenever_they_come(box: Box, unit: str | None) -> None:
    folder = box.root / f"units/{UNIT}.d"
    folder.mkdir()
    for name in ("10-model.conf", "20-port.conf"):
        (folder / name).write_text(f"[Service]\nExecStart=\nExecStart=/usr/bin/{name}\n")
    if unit:
        (box.root / "units" / UNIT).write_text(unit)
    box.serve("one")
    assert not folder.exists()
    kept = {path.name.partition(".old-")[0]: path for path in (box.root / "kept").iterdir()}
    assert {path.name for path in kept[f"{UNIT}.d"].iterdir()} == {"10-model.conf", "20-port.conf"}
    assert (UNIT in kept) == bool(unit)
    folder.mkdir()
    (folder / "memory.conf").write_text("[Service]\nMemoryMax=100G\n")
    box.serve("two")
    assert not folder.exists()
    assert len(list((box.root / "kept").glob(f"{UNIT}.d.old-*/memory.conf"))) == 1


ELSEWHERE = {
    "set-property": f"etc/systemd/system.control/{UNIT}.d/50-MemoryMax.conf",
    "set-property --runtime": f"run/systemd/system.control/{UNIT}.d/50-CPUQuota.conf",
    "a unit of higher precedence": f"etc/systemd/system.control/{UNIT}",
    "a transient unit": f"run/systemd/transient/{UNIT}",
    "systemctl edit --runtime": f"run/systemd/system/{UNIT}.d/override.conf",
    "by hand, in /usr/local": f"usr/local/lib/systemd/system/{UNIT}.d/x.conf",
}


@pytest.mark.parametrize("place", ELSEWHERE)
def test_what_counts_more_than_the_unit_is_seen_wherever_it_lies(box: Box, place: str) -> None:
    one = box.serve("one")
    path = box.root / "system" / ELSEWHERE[place]
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nMemoryMax=1G\n")
    assert box.state()["effective"]["aside"] == [{"path": str(path), "sets": ["MemoryMax"], "restart": False}]
    box.systemd.calls.clear()
    box.do(switch.switch, one)
    assert box.systemd.calls == ["daemon-reload", "enable"]
    assert not path.exists()
    assert [p.name for p in (box.root / "kept").glob("*/*")] == [path.name]
    assert box.state()["effective"]["aside"] == []


def test_a_packages_drop_in_is_masked_and_stays(box: Box) -> None:
    one = box.serve("one")
    path = box.root / "system/usr/lib/systemd/system" / f"{UNIT}.d/vendor.conf"
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nNice=5\n")
    box.do(switch.switch, one)
    assert path.exists()
    assert os.path.realpath(box.root / f"units/{UNIT}.d/vendor.conf") == os.devnull
    assert box.state()["effective"]["aside"] == []


def test_a_setting_that_the_process_was_started_with_costs_a_restart(box: Box) -> None:
    one = box.serve("one")
    folder = box.root / f"units/{UNIT}.d"
    folder.mkdir()
    (folder / "nice.conf").write_text("[Service]\nNice=5\n")
    box.systemd.calls.clear()
    box.do(switch.switch, one)
    assert box.systemd.calls[:2] == ["stop", "daemon-reload"]
    assert "start" in box.systemd.calls
    assert box.systemd.running == one


def test_a_process_that_only_carries_the_stamp_is_not_the_release(box: Box) -> None:
    one = box.serve("one")
    box.systemd.instead = ["/bin/sleep", "inf"]
    box.systemd._run(one)
    assert box.state()["runs"] is None
    assert box.state()["effective"]["process"] == "its command line is /bin/sleep inf"
    box.systemd.instead = []
    box.do(switch.switch, one)
    assert box.state()["runs"] == one


def test_a_drop_in_for_all_services_that_goes_against_the_release_is_told_not_moved(box: Box) -> None:
    one = box.serve("one")
    folder = box.root / "system/etc/systemd/system/service.d"
    for path, text in {
        box.root / "units/service.d/user.conf": "[Service]\nUser=nobody\n",
        box.root / "system/run/systemd/system/service.d/zzz-lxc-service.conf": "[Service]\nProcSubset=all\n",
    }.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    with pytest.raises(CommandError, match=r"user\.conf sets User for more services than this"):
        box.do(switch.switch, one)
    assert not folder.exists()
    assert (box.root / "units/service.d/user.conf").exists()
    assert [one["sets"] for one in box.state()["effective"]["shared"]] == [["User"]]


def test_folders_that_others_may_write_are_closed(box: Box) -> None:
    one = box.serve("one")
    (box.root / "jit/venv-one").mkdir(parents=True)
    (box.root / "jit/venv-one").chmod(0o777)
    assert box.state()["loose"] == [str(box.root / "jit/venv-one")]
    box.systemd.calls.clear()
    box.do(switch.switch, one)
    assert (box.state()["loose"], box.systemd.calls) == ([], ["daemon-reload", "enable"])


@pytest.mark.parametrize(
    ("mapped", "restarts"),
    [
        ("{root}/venvs/venv-one/lib/a b.so", False),
        ("/usr/lib/libc.so", False),
        ("{root}/venvs/.venv-one.gpubox-old/lib/a.so", True),
        ("{root}/venvs/venv-one/lib/a.so (deleted)", True),
    ],
)
def test_a_process_of_a_venv_that_was_repaired_is_restarted(box: Box, mapped: str, restarts: bool) -> None:
    one = box.serve("one")
    (box.root / "proc/100/maps").write_text(f"7f-7f r-xp 00000000 00:42 12345   {mapped.format(root=box.root)}\n")
    assert (box.state()["runs"] is None) is restarts
    box.systemd.calls.clear()
    box.do(switch.switch, one)
    assert ("start" in box.systemd.calls) is restarts


def test_a_venv_folder_that_a_person_made_is_kept_aside(box: Box) -> None:
    (box.root / "ml-env").mkdir()
    (box.root / "ml-env/theirs").touch()
    box.serve("one")
    (aside,) = box.root.glob("ml-env.old-*")
    assert (aside / "theirs").exists()
    assert (box.root / "ml-env").is_symlink()


def test_a_venv_link_that_a_person_made_is_kept_aside(box: Box) -> None:
    (box.root / "ml-env").symlink_to("/opt/theirs")
    box.serve("one")
    box.serve("two")
    (aside,) = box.root.glob("ml-env.old-*")
    assert str(aside.readlink()) == "/opt/theirs"
    assert (box.root / "ml-env").readlink() == box.root / "venvs/venv-two"


def test_prune_keeps_what_is_needed(box: Box) -> None:
    digests = [box.serve(str(n)) for n in range(5)]
    bad = box.made("bad")
    (box.root / "venvs/venv-half.new").mkdir()
    for compiled in ("venv-0", "venv-4", "venv-long-gone"):
        (box.root / "jit" / compiled).mkdir(parents=True)
    assert set(box.state()["superfluous"]) == {bad, "venv-bad", "venv-half.new", "venv-long-gone"}
    box.do(switch.prune, keep=1)
    assert box.state()["superfluous"] == []
    assert box.names("releases") == {*digests[2:]}
    assert box.names("venvs") == {"venv-2", "venv-3", "venv-4"}
    assert box.names("jit") == {"venv-4"}
    assert bad not in {release["digest"] for release in box.state()["releases"]}
    assert not list((box.root / "releases").glob(f"{digests[0]}*"))


@pytest.mark.pain("P64")
def test_orphans_of_the_unit_are_ended_and_no_others(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"7": f"0::/system.slice/{UNIT}", "8": f"1:name=systemd:/system.slice/{UNIT}/x", "9": "0::/user.slice"}
    for pid, group in {**groups, "10": f"0::/system.slice/my-{UNIT}"}.items():
        (box.root / "proc" / pid).mkdir()
        (box.root / "proc" / pid / "cgroup").write_text(group + "\n")
    killed = []

    def kill(pid: int, _: int) -> None:
        killed.append(pid)
        (box.root / f"proc/{pid}/cgroup").unlink()

    monkeypatch.setattr("gpubox.remote.switch.os.kill", kill)
    box.serve("one")
    assert sorted(killed) == [7, 8]


def test_a_systemd_that_fails_is_finished_by_the_next_run(box: Box) -> None:
    old, new = box.serve("old"), box.made("new")
    box.systemd.broken = "start"
    with pytest.raises(CommandError, match="no such luck"):
        box.do(switch.switch, new)
    box.systemd.broken = ""
    box.do(switch.switch, new)
    assert (box.systemd.running, box.state()["previous"]) == (new, old)


def test_what_a_killed_run_set_going_is_waited_for(box: Box) -> None:
    done: list[str] = []

    def next_run() -> None:
        with switch._alone(box.arguments):
            done.append("next")

    with switch._alone(box.arguments):
        thread = Thread(target=next_run)
        thread.start()
        done.append("killed")
    thread.join()
    assert done == ["killed", "next"]


@pytest.mark.parametrize("file", ["release.json", "argv.json", "probe.json"])
def test_a_damaged_release_can_still_be_looked_at_and_put_back(box: Box, file: str) -> None:
    one = box.serve("one")
    path = box.root / f"releases/{one}/{file}"
    content = path.read_text()
    path.write_text("{")
    assert box.state()["current"] == one
    path.write_text(content)
    assert [release["digest"] for release in box.state()["releases"]] == [one]


SOURCES = {str(m.__file__): Path(str(m.__file__)).read_text().splitlines() for m in (switch, files, command)}
EFFECT = re.compile(
    r"rename|replace\(|write|unlink|symlink_to|rm(tree|dir)|move|kill|mkdir|chmod|touch|sync|open\(|subprocess\.run"
)
"""Nothing can be half done between two of these."""


class Killed(BaseException):
    pass


def killed_at(step: int, act: Callable[[], None]) -> bool:
    """Run and be gone before the step-th line that has an effect; False: it ended before that."""
    left = step

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        source = SOURCES.get(frame.f_code.co_filename)
        if source is None:
            return None
        if event == "line" and EFFECT.search(source[frame.f_lineno - 1]):
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Killed
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except Killed:
        return True
    finally:
        sys.settrace(before)
    return False


def settled(box: Box) -> dict[str, Any]:
    return {**box.state(), "running": box.systemd.running, "link": str((box.root / "ml-env").readlink().name)}


ACTS: dict[str, Callable[[Box, str], None]] = {
    "switch": lambda box, new: box.do(switch.switch, new),
    "rollback": lambda box, _: box.do(switch.rollback),
    "prune": lambda box, _: box.do(switch.prune, keep=0),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_run_killed_at_any_line_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    wanted: dict[str, Any] | None = None
    step, more = 100_000, True
    while more:
        root = tmp_path / str(step)
        for folder in ("units", "proc", "releases", "venvs"):
            (root / folder).mkdir(parents=True)
        box = Box(root, Systemd(root))
        monkeypatch.setattr("gpubox.remote.command.subprocess.run", box.systemd)
        served = [box.serve("a"), box.serve("b")]
        new = box.made("new")
        more = killed_at(step, partial(ACTS[name], box, new))
        check_whole(box, [*served, new])
        if more or wanted is None:
            again(name, box, new, served)
        result = {**settled(box), "releases": [r["digest"] for r in box.state()["releases"]]}
        if name == "rollback":
            del result["previous"]  # the next run switches to it instead: another way to the same release
        wanted = wanted or result
        assert result == wanted, f"killed at line {step}"
        step, more = (0, True) if step == 100_000 else (step + 1, more)
    assert step > 5


def again(name: str, box: Box, new: str, served: list[str]) -> None:
    """The next run: it asks for the same end as the first."""
    if name == "rollback":
        box.do(switch.switch, served[0])
    else:
        ACTS[name](box, new)


def check_whole(box: Box, known: list[str]) -> None:
    """At any moment: the unit is a whole one, what runs is one release, and current names one."""
    unit = (box.root / "units" / UNIT).read_text()
    assert unit.split()[5] in known
    assert unit.endswith("\n")
    assert box.systemd.running in {*known, ""}
    assert box.state()["current"] in known
    assert {r["digest"] for r in box.state()["releases"]} <= set(known)


def test_as_the_box_runs_it(tmp_path: Path, remote_python: str) -> None:
    arguments = {"unit": UNIT, "root": str(tmp_path), "proc": str(tmp_path)}
    for words, given, code in [
        (["switch"], {**arguments, "digest": "0" * 16}, 1),
        (["other"], arguments, 2),
        (["state"], {"root": "x"}, 2),
        ([], arguments, 2),
    ]:
        done = sent.run("switch", *words, given=given, python=remote_python)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr


def test_a_whole_switch_as_the_box_runs_it(tmp_path: Path, remote_python: str) -> None:
    """With a systemctl that says yes to everything and starts nothing."""
    for folder in ("bin", "units", "releases", "venvs", "proc"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\necho ActiveState=inactive\necho MainPID=0\n")
    (tmp_path / "bin/systemctl").chmod(0o755)
    one, two = (Box(tmp_path, Systemd(tmp_path)).made(name) for name in ("one", "two"))
    places = {name: str(tmp_path / name) for name in ("units", "proc")}  # never this machine's own processes
    given = {"unit": UNIT, "root": str(tmp_path), "venv_link": str(tmp_path / "env"), **places}

    def do(action: str, digest: str) -> dict[str, Any]:
        path = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
        done = sent.run("switch", action, given={**given, "digest": digest}, python=remote_python, environment=path)
        assert (done.returncode, done.stderr) == (0, "")
        return dict(json.loads(done.stdout))

    for digest in (one, two):
        do("switch", digest)
        do("verified", digest)
    found = do("state", "")
    assert (found["current"], found["previous"], found["unit"], found["linked"]) == (two, one, two, True)
    assert all(release["verified"] for release in found["releases"])
    assert do("rollback", "")["current"] == one
    assert do("prune", "")["superfluous"] == []
