"""From a bare box and its address to a server that answers: two commands; and what the doctor says of it then."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import testinfra
from testinfra.host import Host

from gpubox import inventory
from gpubox.lab import lifecycle, record
from tests.deploy import converge
from tests.faults import onboarding
from tests.faults.onboarding import NAME, gpubox, onboard
from tests.ssh import spec


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("onboard")


@pytest.fixture(scope="module")
def bare() -> Iterator[None]:
    onboarding.a_box()
    yield
    lifecycle.give_hardware(NAME, record.wish(None, None).hardware)


@pytest.fixture(scope="module")
def serving(bare: None, folder: Path) -> Path:
    """The inventory that onboarding wrote, converged."""
    code, said = onboard(folder, "--yes")
    assert (code, said["profile"]) == (0, "tiny-cpu"), said
    converge(folder / "box.py").ended_well()
    return folder / "box.py"


@pytest.fixture(scope="module")
def on_box(serving: Path) -> Host:
    box = inventory.load(serving).box(NAME)
    return testinfra.get_host(spec(box.name, box.connection))


def test_looking_changes_nothing(bare: None, folder: Path) -> None:
    code, said = onboard(folder, "--dry")
    assert (code, said["files"]) == (0, [])
    assert "LXC container" in said["card"]["machine"][0]


def test_two_commands_and_it_serves(serving: Path, folder: Path) -> None:
    code, said = gpubox(folder, "check", "--inventory", str(serving), "--json")
    assert code == 0, said
    assert converge(serving).ended_well().changed == []


def test_a_second_onboarding_writes_nothing(serving: Path, folder: Path) -> None:
    before = serving.read_text()
    code, said = onboard(folder, "--yes")
    assert (code, said["files"]) == (0, []), said
    assert serving.read_text() == before


def test_the_doctor_passes_and_then_finds_each_damage(serving: Path, folder: Path, on_box: Host) -> None:
    code, said = gpubox(folder, "doctor", NAME, "--inventory", str(serving), "--json")
    assert (code, {c["status"] for c in said["checks"]} - {"pass", "warn"}) == (0, set()), said
    damages = {
        "service": "systemctl stop sglang",
        "cuda": "update-alternatives --set cuda /usr/local/cuda-12.8",
        "model": "truncate -s 0 /root/models/tiny-chat/model.safetensors",
        "venv": "rm -r /root/ml-env/lib/python3.11/site-packages/orjson*",
        "host": "dpkg --purge --force-depends ninja-build",
    }
    for command in damages.values():
        on_box.run_expect([0], command)
    code, said = gpubox(folder, "doctor", NAME, "--inventory", str(serving), "--json")
    failed = {check["id"] for check in said["checks"] if check["status"] == "fail"}
    assert (code, failed) == (1, {*damages, "endpoint"}), said

    converge(serving).ended_well()
    code, said = gpubox(folder, "doctor", NAME, "--inventory", str(serving), "--json")
    assert code == 0, said


def test_a_host_that_does_not_answer_cannot_be_told(serving: Path, folder: Path) -> None:
    deaf = folder / "deaf.py"
    deaf.write_text(serving.read_text().replace(onboarding.ADDRESS, "10.87.0.250"))
    code, said = gpubox(folder, "doctor", NAME, "--inventory", str(deaf), "--json")
    assert code == 2
    assert {check["id"]: check["status"] for check in said["checks"]}["ssh"] == "unknown"


@pytest.mark.parametrize(
    ("hardware", "profile", "reason"),
    [
        ("rtx-4090-x1-vm", "glm-5-nvfp4", "1 cards"),
        ("two-kinds", "qwen3-8b-24gb", "RTX 3090"),
        ("rtx-pro-6000-x8-stale", "glm-5-nvfp4", "570.124.06"),
    ],
)
def test_other_hardware_gets_the_reason_that_is_right(
    serving: Path, folder: Path, hardware: str, profile: str, reason: str
) -> None:
    lifecycle.give_hardware(NAME, hardware)
    _, said = onboard(folder, "--dry", via=False)
    reasons = next(one["reasons"] for one in said["proposals"] if one["profile"] == profile)
    assert any(reason in each for each in reasons), reasons
