"""`gpubox onboard` as it is called: unattended, without a terminal, with what is found there."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from gpubox import inventory
from gpubox.cli import main, onboard
from gpubox.cli._complete import hosts
from gpubox.cli.doctor import command as doctor
from gpubox.onboard import probe
from gpubox.onboard.plan import container_of
from gpubox.onboard.state import Box, Container, Hypervisor, Server
from gpubox.support.errors import GpuboxError
from tests.unit import simulated

Call = Callable[..., Result]
SMALL = simulated.box("rtx-4090-x1-vm", "vm")
BIG = simulated.box("rtx-pro-6000-x8", "lxc")
ABOVE = Hypervisor(
    "pve", "proxmox", "Debian", "6.8", BIG.gpus, [Container("101", "gpu-a", ["192.0.2.21"]), Container("102", "x", [])]
)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    def invoke(box: Box, *words: str) -> Result:
        monkeypatch.setattr(probe, "box", lambda address, connection: box)
        monkeypatch.setattr(probe, "hypervisor", lambda address, connection: ABOVE)
        given = ["192.0.2.21", "--inventory", str(tmp_path / "box.py"), *words]
        return CliRunner().invoke(onboard.command, given)

    return invoke


def said(result: Result) -> dict[str, Any]:
    assert result.stdout, f"{result.output}{result.exception!r}"
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_unattended_it_writes_what_fits(call: Call, tmp_path: Path) -> None:
    result = call(SMALL, "--yes", "--json")
    assert (result.exit_code, said(result)["profile"]) == (0, "qwen3-8b-24gb"), result.output
    assert inventory.load(tmp_path / "box.py").box("box").address == "192.0.2.21"


def test_without_a_terminal_and_without_yes_nothing_is_written(call: Call, tmp_path: Path) -> None:
    result = call(SMALL)
    assert result.exit_code == 0
    assert "nothing was written" in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_open_server_is_an_error_until_a_person_says_the_network_is_private(call: Call, tmp_path: Path) -> None:
    result = call(BIG, "--via", "192.0.2.1", "--yes", "--json")
    assert result.exit_code == 1
    assert [f["rule"] for f in said(result)["findings"] if f["severity"] == "error"] == ["api-open"]
    (tmp_path / "box.py").unlink()
    told = call(BIG, "--via", "192.0.2.1", "--yes")
    assert told.exit_code == 1
    assert "api-open" in told.output.partition("checked(globals())")[2]
    assert "next: mend the errors above, then pyinfra" in told.output
    (tmp_path / "box.py").unlink()
    result = call(BIG, "--via", "192.0.2.1", "--yes", "--json", "--private-network")
    assert result.exit_code == 0, result.output
    box = inventory.load(tmp_path / "box.py").box("box")
    assert (box.settings.exposure, box.settings.hypervisor) == ("private-network", "pve")
    assert box.settings.container is not None
    assert (box.settings.container.kind, box.settings.container.name) == ("proxmox", "101")


def test_a_distribution_without_an_old_toolkit_gets_the_newer_ones(call: Call, tmp_path: Path) -> None:
    newer = simulated.box("rtx-pro-6000-x8", "lxc", os="debian13\nDebian GNU/Linux 13 (trixie)\n")
    result = call(newer, "--via", "192.0.2.1", "--yes", "--json", "--private-network")
    assert (result.exit_code, said(result)["profile"]) == (0, "glm-5-nvfp4"), result.output
    assert inventory.load(tmp_path / "box.py").box("box").settings.cuda.toolkits == ["13.1"]


def test_names_that_the_inventory_has_for_an_address_stay(call: Call, tmp_path: Path) -> None:
    text = """
hypervisors = [
    ("rig", {"ssh_hostname": "192.0.2.1", "kind": "proxmox"}),
]

gpu_boxes = [
]
"""
    (tmp_path / "box.py").write_text(text)
    assert call(BIG, "--via", "192.0.2.1", "--yes", "--name", "a", "--private-network").exit_code == 0
    found = inventory.load(tmp_path / "box.py")
    assert (list(found.hypervisors), found.box("a").settings.hypervisor) == (["rig"], "rig")
    before = (tmp_path / "box.py").read_text()
    assert said(call(BIG, "--via", "192.0.2.1", "--yes", "--json"))["host"] == "a"
    assert (tmp_path / "box.py").read_text() == before


def test_a_key_for_the_clients_closes_the_server(call: Call, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("hunter2hunter2\n")
    key.chmod(0o600)
    result = call(BIG, "--via", "192.0.2.1", "--yes", "--json", "--api-key-file", str(key))
    assert result.exit_code == 0, result.output
    assert inventory.load(tmp_path / "box.py").box("box").settings.api_key_file == str(key)
    assert "hunter2" not in result.output


def test_where_nothing_fits_nothing_is_written(call: Call, tmp_path: Path) -> None:
    result = call(simulated.box("rtx-pro-6000-x8-stale", "lxc"), "--yes")
    assert result.exit_code == 1
    assert "no profile fits this machine" in result.output
    assert "570.124.06" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_profile_that_is_named_is_taken_although_nothing_fits(call: Call, tmp_path: Path) -> None:
    result = call(simulated.box("rtx-pro-6000-x8-stale", "lxc"), "--yes", "--json", "--profile", "glm-5-nvfp4")
    assert result.exit_code == 1
    assert "driver-version" in {finding["rule"] for finding in said(result)["findings"]}
    assert (tmp_path / "box.py").exists()


def test_a_profile_that_is_none_leaves_nothing_behind(call: Call, tmp_path: Path) -> None:
    result = call(SMALL, "--yes", "--profile", "no-such-profile")
    assert result.exit_code == 1
    assert "no profile named" in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_port_of_the_box_is_not_the_hypervisors(call: Call, tmp_path: Path) -> None:
    result = call(BIG, "--via", "ops@192.0.2.1", "--port", "2222", "--yes", "--json", "--private-network")
    assert result.exit_code == 0, result.output
    found = inventory.load(tmp_path / "box.py")
    assert dict(found.box("box").connection)["ssh_port"] == 2222
    above = dict(found.hypervisors["pve"].connection)
    assert (above["ssh_hostname"], above["ssh_user"], "ssh_port" in above) == ("192.0.2.1", "ops", False)


def test_a_box_that_the_inventory_has_keeps_its_profile(call: Call, tmp_path: Path) -> None:
    assert call(SMALL, "--yes").exit_code == 0
    before = (tmp_path / "box.py").read_text()
    result = call(SMALL, "--yes", "--profile", "tiny-cpu")
    assert "has this box with the profile qwen3-8b-24gb: change that there" in result.output
    server = Server(1, ["python3", "-m", "sglang.launch_server"], {}, [], [], "", "/", "", "0.5.23", "2.14.1")
    assert call(replace(SMALL, servers=[server]), "--yes").exit_code == 0
    result = call(replace(SMALL, servers=[server]), "--yes", "--adopt")
    assert (result.exit_code, "take its entry out" in result.output) == (1, True)
    assert (tmp_path / "box.py").read_text() == before


def test_two_servers_by_hand_are_a_question(call: Call) -> None:
    server = Server(1, ["python3", "-m", "sglang.launch_server"], {}, [], [], "", "/", "", "0.5.23", "2.14.1")
    result = call(replace(SMALL, servers=[server, replace(server, pid=2)]), "--yes")
    assert result.exit_code == 1
    assert "2 model servers run there" in result.output


def test_a_box_that_is_no_container_of_the_hypervisor_is_said(call: Call) -> None:
    with pytest.raises(GpuboxError, match="no container"):
        container_of("192.0.2.99", replace(BIG, hostname="other", addresses=["192.0.2.99"]), ABOVE)


@pytest.mark.parametrize(
    ("address", "hostname", "name"), [("192.0.2.21", "anything", "101"), ("192.0.2.99", "x", "102")]
)
def test_a_container_is_known_by_address_then_by_name(address: str, hostname: str, name: str) -> None:
    assert container_of(address, replace(BIG, hostname=hostname, addresses=[address]), ABOVE).name == name


def test_hosts_complete() -> None:
    context = doctor.make_context("doctor", ["--all"])
    assert hosts(context, doctor.params[0], "gp") == ["gpu01"]
    assert hosts(context, doctor.params[0], "zz") == []


@pytest.mark.parametrize("name", ["ask", "diff", "doctor", "releases", "rollback"])
def test_every_command_about_a_box_completes_its_name(name: str) -> None:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    assert [item.value for item in found.params[0].shell_complete(click.Context(found), "gpu")] == ["gpu01"]


def test_one_of_two_servers_is_adopted_by_its_number(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubox.support.paths.profiles", lambda: tmp_path / "profiles")
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "/srv/m", "--tp", "4", "--port"]
    one = Server(812, [*argv, "30000"], {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, [], [], "", "/", "", "0.5.23", "2.14.1")
    two = replace(one, pid=977, argv=[*argv, "30001"], environment={"CUDA_VISIBLE_DEVICES": "4,5,6,7"})
    box = replace(BIG, servers=[one, two])
    asked = call(box, "--yes")
    assert asked.exit_code == 1
    assert "812 on cards 0,1,2,3, port 30000, /srv/m; 977 on cards 4,5,6,7, port 30001" in " ".join(
        asked.output.split()
    )
    assert "--server 812" in asked.output
    result = call(box, "--yes", "--server", "977", "--profile-name", "second", "--json")
    assert result.exit_code == 0, result.output
    assert "box-servers" in {finding["rule"] for finding in said(result)["findings"]}
    text = (tmp_path / "profiles/second.yaml").read_text()
    assert "port: 30001" in text
    assert "count: 4" in text
