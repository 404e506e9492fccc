"""Steps `python_env`, `model`, `server` and `ready`: the service is what the profile says, and answers."""

import json
import re
from typing import Any

import httpx
import pytest
from testinfra.host import Host

from gpubox.facts import release
from gpubox.facts.release import Releases
from gpubox.facts.venv import state_command
from gpubox.hosts import Box
from gpubox.remote.effective import Effective
from gpubox.server import in_effect
from gpubox.server.release import venv_path
from gpubox.server.service import ENVIRONMENT_PATH, UNIT, Service, venv_of
from tests.acceptance.limits import ceiling


@pytest.fixture(scope="module")
def pid(host: Host) -> str:
    return str(host.check_output("systemctl show --value --property=MainPID %s", UNIT))


@pytest.fixture(scope="module")
def releases(host: Host, box: Box) -> Releases:
    asked = {"unit": UNIT, "venv_link": box.settings.venv_path}
    return release.parse(str(host.check_output("sh -c %s", release.look(asked).get_raw_value())))


@pytest.fixture(scope="module")
def effective(releases: Releases) -> Effective:
    return releases.effective


@pytest.mark.pain("P32", "P34")
def test_packages_equal_the_lock(host: Host, box: Box) -> None:
    script = "import importlib.metadata as m, json; print(json.dumps([(d.name, d.version) for d in m.distributions()]))"
    found = json.loads(host.check_output("%s/bin/python3 -c %s", box.settings.venv_path, script))
    installed = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}
    assert installed == box.stack.pins


def test_metadata_of_the_venv_is_whole(host: Host, box: Box) -> None:
    script = (
        "import importlib.metadata as m, hashlib, base64, sys\n"
        "for d in m.distributions():\n"
        "    for f in d.files or []:\n"
        "        if f.name in ('METADATA', 'entry_points.txt') and f.hash:\n"
        "            digest = hashlib.sha256(f.locate().read_bytes()).digest()\n"
        "            if base64.urlsafe_b64encode(digest).rstrip(b'=').decode() != f.hash.value: print(f)\n"
    )
    assert host.check_output("%s/bin/python3 -c %s", box.settings.venv_path, script) == ""


def test_files_of_the_venv_are_as_built(host: Host, box: Box) -> None:
    tree = json.loads(host.check_output("sh -c %s", state_command(venv_path(venv_of(box)))))["tree"]
    assert (tree["count"], tree["wrong"]) == (0, {})


@pytest.mark.pain("P37")
def test_venv_has_the_stacks_python(host: Host, box: Box) -> None:
    said = host.check_output("%s/bin/python3 --version", box.settings.venv_path)
    assert said.startswith(f"Python {box.stack.python}.")


def test_unit_is_active(host: Host) -> None:
    assert host.service(UNIT).is_running


def test_unit_is_enabled(host: Host) -> None:
    assert host.service(UNIT).is_enabled


def test_files_are_what_the_profile_makes(host: Host, wish: Service) -> None:
    for wanted in wish.files:
        file = host.file(wanted.path)
        assert file.content == wanted.data, wanted.path
        assert (f"{file.mode:o}", file.user, file.group) == (wanted.mode, wanted.user, wanted.group), wanted.path


def test_environment_file_is_roots_alone(host: Host) -> None:
    assert host.file(ENVIRONMENT_PATH).mode == 0o600


def test_nothing_but_the_unit_says_what_runs(effective: Effective) -> None:
    """Drop-ins, set-property, a unit of higher precedence; what systemd has loaded."""
    assert in_effect.wrong(effective, UNIT) == []


def test_process_is_the_program_asked_for(effective: Effective) -> None:
    assert effective.process is None


def test_folders_are_roots_alone(releases: Releases) -> None:
    assert releases.loose == ()


@pytest.mark.pain("P67")
def test_process_has_the_command_line_asked_for(host: Host, wish: Service, pid: str) -> None:
    assert host.file(f"/proc/{pid}/cmdline").content.decode().split("\0")[:-1] == wish.argv


def test_process_has_the_environment_asked_for(host: Host, wish: Service, pid: str) -> None:
    pairs = host.file(f"/proc/{pid}/environ").content.decode().split("\0")
    environment = dict(pair.split("=", 1) for pair in pairs if pair)
    assert {name: environment.get(name) for name in wish.environment} == wish.environment


@pytest.mark.pain("P62")
def test_process_may_lock_memory_and_open_files(host: Host, pid: str) -> None:
    limits = host.check_output("prlimit --pid %s --memlock --nofile --output HARD --noheadings --raw", pid).split()
    locked, files = ceiling(host, "-l", "unlimited"), ceiling(host, "-n", 1048576)
    assert limits == [locked if locked == "unlimited" else str(int(locked) * 1024), files]


def test_port_listens(host: Host, box: Box) -> None:
    assert host.socket(f"tcp://{box.profile.flags.get('host', '127.0.0.1')}:{box.profile.port}").is_listening


@pytest.mark.pain("P53")
def test_a_completion_is_the_known_answer(box: Box) -> None:
    known = box.profile.known_answer
    if known is None:
        pytest.skip(f"profile {box.profile.name} has no known answer")
    messages = [{"role": "user", "content": known.prompt}]
    model = str(box.profile.flags.get("served-model-name", box.profile.model_path))
    body: dict[str, Any] = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 64}
    headers = box.authorization()
    reply = httpx.post(f"{url(box)}/v1/chat/completions", json=body, headers=headers, timeout=60, trust_env=False)
    assert reply.json()["choices"][0]["message"]["content"].strip() == known.answer


def test_the_log_with_the_api_key_is_not_for_everyone(host: Host) -> None:
    """SGLang logs its arguments whole; Debian lets root, adm and systemd-journal read what services log."""
    assert host.run("setpriv --reuid=nobody --clear-groups journalctl --unit=%s --lines=1 --quiet", UNIT).stdout == ""


def test_metrics_are_there(box: Box) -> None:
    if not box.profile.flags.get("enable-metrics"):
        pytest.skip(f"profile {box.profile.name} does not ask for metrics")
    assert "sglang:" in httpx.get(f"{url(box)}/metrics", headers=box.authorization(), timeout=30, trust_env=False).text


def url(box: Box) -> str:
    return f"http://{box.address}:{box.profile.port}"
