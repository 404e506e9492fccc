"""A server that runs by hand: only one with the very same flags is ever meant."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpubox.remote import checks, handover, proc
from gpubox.remote.handover import LAUNCHER

FLAGS = ["--model-path", "/m", "--port", "30000", "--sleep-on-idle"]
BY_HAND = ["/root/v/bin/python3", "-u", "-m", LAUNCHER]
SESSION = "0::/user.slice/user-0.slice/session-3.scope\n"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(proc, "PROC", tmp_path)

    def add(pid: int, argv: list[str], parent: int = 1, group: str = SESSION, leads: int = 1) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} {leads} 1 0\n")
        (folder / "cgroup").write_text(group)

    return add


@pytest.mark.parametrize(
    "words",
    [
        FLAGS,
        ["--port=30000", "--model-path=/m", "--sleep-on-idle"],
        [*FLAGS, "--api-key", "k"],
        [*FLAGS, "--config", "/f"],
        [*FLAGS, "--revision", "abc"],
    ],
)
def test_the_same_flags_in_any_order_and_form_are_the_same_server(
    process: Callable[..., None], words: list[str]
) -> None:
    process(700, ["/bin/sh"])
    process(812, [*BY_HAND, *words])
    process(813, ["sglang::scheduler"], parent=812)
    process(814, ["sglang::worker"], parent=813)
    assert handover.look(FLAGS, "sglang.service") == {"pids": [812, 813, 814], "unit": ""}


@pytest.mark.parametrize(
    "words",
    [[*FLAGS, "--tp-size", "2"], FLAGS[:-1], ["--model-path", "/other", *FLAGS[2:]]],
)
def test_one_flag_that_differs_is_another_server(process: Callable[..., None], words: list[str]) -> None:
    process(812, [*BY_HAND, *words])
    assert handover.look(FLAGS, "sglang.service")["pids"] == []


@pytest.mark.parametrize(
    "argv",
    [
        ["/v/bin/python3", "/v/bin/sglang", "serve", *FLAGS],
        ["/v/bin/python3", "-u", "/v/bin/sglang", "serve", "/m", *FLAGS[2:]],
    ],
)
def test_the_other_launcher_is_the_same_server(process: Callable[..., None], argv: list[str]) -> None:
    process(812, argv)
    assert handover.look(FLAGS, "sglang.service")["pids"] == [812]


def test_the_launcher_by_its_file_is_the_same_server(process: Callable[..., None]) -> None:
    process(812, ["python3", "/v/lib/python3.11/site-packages/sglang/launch_server.py", *FLAGS])
    assert handover.look(FLAGS, "sglang.service")["pids"] == [812]


@pytest.mark.parametrize(
    ("text", "pids"),
    [
        ("model-path: /m\nport: 1\nlog-requests: false\n", [812]),  # the command line's port counts
        ("model-path: /other\n", []),
        ("{model-path: /m}\n", []),  # not read here
    ],
)
def test_flags_of_a_file_count_too(process: Callable[..., None], tmp_path: Path, text: str, pids: list[int]) -> None:
    process(812, [*BY_HAND, "--config", "flags.yaml", *FLAGS[2:]])
    (tmp_path / "812/cwd").symlink_to(tmp_path)
    (tmp_path / "flags.yaml").write_text(text)
    assert handover.look(FLAGS, "sglang.service")["pids"] == pids


def test_secrets_that_adoption_leaves_out_make_no_other_server(process: Callable[..., None]) -> None:
    process(812, [*BY_HAND, *FLAGS, "--admin-api-key", "k"])
    assert handover.look(FLAGS, "sglang.service")["pids"] == [812]


def test_what_a_container_holds_is_never_meant(process: Callable[..., None], tmp_path: Path) -> None:
    process(812, [*BY_HAND, *FLAGS])
    for name, namespace in (("812", "pid:[2]"), ("self", "pid:[1]")):
        (tmp_path / name / "ns").mkdir(parents=True)
        (tmp_path / name / "ns/pid").symlink_to(namespace)
    assert handover.look(FLAGS, "sglang.service")["pids"] == []


def test_the_units_own_is_never_meant_and_another_units_is_named(process: Callable[..., None]) -> None:
    process(812, [*BY_HAND, *FLAGS], group="0::/system.slice/sglang.service\n")
    assert handover.look(FLAGS, "sglang.service")["pids"] == []
    process(900, [*BY_HAND, *FLAGS], group="1:name=systemd:/system.slice/glm.service\n")
    assert handover.look(FLAGS, "sglang.service") == {"pids": [900], "unit": "glm.service"}


def test_a_notebooks_service_is_not_the_server_that_was_started_in_it(process: Callable[..., None]) -> None:
    group = "0::/system.slice/jupyter.service\n"
    process(700, ["jupyterhub"], group=group)
    process(701, ["/bin/bash"], parent=700, group=group)
    process(812, [*BY_HAND, *FLAGS], parent=701, group=group)
    assert handover.look(FLAGS, "sglang.service") == {"pids": [812], "unit": ""}


def test_a_service_that_starts_the_server_through_a_script_is_named(process: Callable[..., None]) -> None:
    group = "0::/system.slice/glm.service\n"
    process(700, ["/bin/sh", "/root/start.sh"], group=group)
    process(812, [*BY_HAND, *FLAGS], parent=700, group=group)
    process(813, ["sglang::scheduler"], parent=812, group=group)
    assert handover.look(FLAGS, "sglang.service") == {"pids": [812, 813], "unit": "glm.service"}


@pytest.mark.parametrize("group", ["0::/system.slice/ssh.service\n", SESSION])
def test_a_login_is_no_service(process: Callable[..., None], group: str) -> None:
    process(812, [*BY_HAND, *FLAGS], group=group)
    assert handover.look(FLAGS, "sglang.service")["unit"] == ""


@pytest.mark.parametrize(
    "argv",
    [["/bin/sh", "-c", f"python3 -m {LAUNCHER} {' '.join(FLAGS)}"], ["vim", LAUNCHER, *FLAGS], []],
)
def test_what_only_names_it_is_no_server(process: Callable[..., None], argv: list[str]) -> None:
    process(812, argv)
    assert handover.look(FLAGS, "sglang.service")["pids"] == []


class Started:
    """What the script would run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.commands: list[list[str]] = []
        self.how: dict[str, Any] = {}
        monkeypatch.setattr(handover, "ENDED", folder / "ended.json")
        monkeypatch.setattr(handover, "LOG", folder / "log")
        monkeypatch.setattr("gpubox.remote.handover.subprocess.run", lambda words, **_: self.commands.append(words))
        monkeypatch.setattr("gpubox.remote.handover.subprocess.Popen", self._popen)

    def _popen(self, words: list[str], **how: Any) -> None:
        self.commands.append(words)
        self.how = how


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    (tmp_path / "root").mkdir()
    return Started(monkeypatch, tmp_path / "root")


def by_hand(process: Callable[..., None], folder: Path, argv: list[str]) -> None:
    process(812, argv)
    (folder / "812/environ").write_bytes(b"HF_TOKEN=hf_x\0A=b=c\0")
    (folder / "812/cwd").symlink_to(folder)


def test_what_was_ended_is_started_again_as_it_was(
    process: Callable[..., None], started: Started, tmp_path: Path
) -> None:
    by_hand(process, tmp_path, [*BY_HAND, *FLAGS])
    handover.remember(handover.look(FLAGS, "sglang.service"))
    assert handover.ENDED.stat().st_mode & 0o777 == 0o600
    assert handover.again("sglang.service", "/root/ml-env") == 0
    assert started.commands == [["systemctl", "disable", "--now", "sglang.service"], [*BY_HAND, *FLAGS]]
    assert (started.how["cwd"], started.how["env"]) == (str(tmp_path), {"HF_TOKEN": "hf_x", "A": "b=c"})
    assert started.how["start_new_session"]
    assert handover.LOG.stat().st_mode & 0o777 == 0o600


def test_a_service_that_was_ended_is_started_again(process: Callable[..., None], started: Started) -> None:
    process(812, [*BY_HAND, *FLAGS], group="0::/system.slice/glm.service\n")
    handover.remember(handover.look(FLAGS, "sglang.service"))
    handover.again("sglang.service", "/root/ml-env")
    assert started.commands[-1] == ["systemctl", "enable", "--now", "glm.service"]


def test_the_venv_that_it_ran_from_lies_there_again(
    process: Callable[..., None], started: Started, tmp_path: Path
) -> None:
    link = tmp_path / "root/ml-env"
    for day in ("20260101T000000Z", "20261101T000000Z"):
        (tmp_path / f"root/ml-env.old-{day}" / day).mkdir(parents=True)
    link.symlink_to("/venvs/new")
    by_hand(process, tmp_path, [f"{link}/bin/python3", "-m", LAUNCHER, *FLAGS])
    handover.remember(handover.look(FLAGS, "sglang.service"))
    handover.again("sglang.service", str(link))
    assert [path.name for path in link.iterdir()] == ["20261101T000000Z"]


def test_where_nothing_was_ended_nothing_is_started(started: Started) -> None:
    handover.remember({"pids": [], "unit": ""})
    assert handover.again("sglang.service", "/root/ml-env") == 1
    assert started.commands == []


def test_what_is_handed_over_is_not_foreign_to_the_checks(process: Callable[..., None], tmp_path: Path) -> None:
    process(812, [*BY_HAND, *FLAGS])
    about = checks.Arguments("/r", "sglang.service", 30000, "cuda", "13.1", "/m")
    assert not checks._is_own(tmp_path / "812", about)
    assert checks._is_own(tmp_path / "812", replace(about, handed_over=(812,)))


class Machine:
    """Processes that a signal changes: the launcher ends as told, the others when they are killed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, launcher: int, dies: bool, cleans: bool) -> None:
        self.folder, self.launcher, self.dies, self.cleans = folder, launcher, dies, cleans
        self.sent: list[tuple[int, str]] = []
        self.orphaned_while_running: list[int] = []
        self.now = 0.0
        monkeypatch.setattr("gpubox.remote.handover.os.kill", self.kill)
        monkeypatch.setattr("gpubox.remote.handover.time.sleep", self.sleep)
        monkeypatch.setattr("gpubox.remote.handover.time.monotonic", lambda: self.now)

    def kill(self, pid: int, number: int) -> None:
        name = signal.Signals(number).name
        if not (self.folder / str(pid) / "cmdline").exists():
            raise ProcessLookupError
        self.sent.append((pid, name))
        if name == "SIGKILL" or (name == "SIGTERM" and self.dies):
            self.end(pid)
        if name == "SIGTERM" and self.cleans:
            for child in proc.descendants(self.launcher):
                self.end(child)
            self.end(pid)

    def end(self, pid: int) -> None:
        (self.folder / str(pid) / "cmdline").unlink()

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if seconds > handover.POLL_S and not (self.folder / str(self.launcher) / "cmdline").exists():
            self.orphaned_while_running += [pid for pid in (813, 814) if (self.folder / str(pid) / "cmdline").exists()]


@pytest.mark.parametrize(
    ("dies", "cleans", "sent"),
    [
        # killed in loading: it has no handler yet, and its children would outlive it
        (True, False, ["812 SIGTERM", "813 SIGSTOP", "814 SIGSTOP", "813 SIGKILL", "814 SIGKILL"]),
        # it serves, and ends its children itself
        (False, True, ["812 SIGTERM"]),
        # it hangs: all of it is frozen before any of it is killed
        (
            False,
            False,
            ["812 SIGTERM"] + [f"{pid} {name}" for name in ("SIGSTOP", "SIGKILL") for pid in (812, 813, 814)],
        ),
    ],
)
@pytest.mark.pain("P107")
def test_nothing_of_a_server_outlives_its_launcher(
    process: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies: bool,
    cleans: bool,
    sent: list[str],
) -> None:
    process(1, ["/sbin/init"])
    process(812, [*BY_HAND, *FLAGS])
    process(813, ["sglang::scheduler"], parent=812)
    process(814, ["sglang::detokenizer"], parent=812)
    machine = Machine(tmp_path, monkeypatch, 812, dies, cleans)
    handover.end({"pids": [812, 813, 814], "unit": ""})
    assert [f"{pid} {name}" for pid, name in machine.sent] == sent
    assert machine.orphaned_while_running == []


@pytest.mark.pain("P107")
def test_a_child_that_was_left_behind_is_of_its_process_group(
    process: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(812, [*BY_HAND, *FLAGS], leads=812)
    process(813, ["sglang::scheduler"], parent=1, leads=812)
    process(900, ["vim"], leads=900)
    machine = Machine(tmp_path, monkeypatch, 812, dies=True, cleans=False)
    handover.end({"pids": [812], "unit": ""})
    assert {pid for pid, _ in machine.sent} == {812, 813}


@pytest.mark.pain("P107")
def test_a_session_of_its_own_has_the_servers_group_not_the_shells(process: Callable[..., None]) -> None:
    """A server that was started from a script has the script's group: what else is in that is not ours to end."""
    process(700, ["/bin/sh", "start.sh"], leads=700)
    process(701, ["tail", "-f", "log"], parent=700, leads=700)
    process(812, [*BY_HAND, *FLAGS], parent=700, leads=700)
    assert handover._whole([812]) == [812]
