"""A look at a machine as typed data, what is wrong with it, and which profiles fit."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpubox.facts.answers import Answer
from gpubox.onboard import probe, questions
from gpubox.onboard.findings import findings, silent
from gpubox.onboard.proposals import Proposal, proposals
from gpubox.onboard.state import Box, Server
from gpubox.support import payload
from tests.unit import simulated


def proposed(box: Box) -> dict[str, Proposal]:
    listed = proposals({"ssh_hostname": "192.0.2.21"}, box.facts(), silent(box, None), box.gpus)
    return {one.profile: one for one in listed}


def test_eight_cards_in_a_container_get_the_profile_made_for_them() -> None:
    box = simulated.box("rtx-pro-6000-x8", "lxc")
    listed = proposed(box)
    assert next(iter(listed.values())).profile == "glm-5-nvfp4"
    assert listed["glm-5-nvfp4"].fits
    assert "weights" in listed["glm-5-nvfp4"].reasons[0]
    assert "/root/models/GLM-5-NVFP4" in listed["glm-5-nvfp4"].notes[0]
    assert not listed["glm-5-nvfp4-vm"].fits
    assert [one.rule for one in findings("box", box, None)] == ["box-hypervisor"]


def test_a_profile_for_one_card_needs_no_settings_between_cards() -> None:
    listed = proposed(simulated.box("rtx-pro-6000-x8", "bare"))
    assert [note for note in listed["qwen3-8b-24gb"].notes if "NCCL" in note] == []


def test_one_card_of_24_gb_in_a_vm_gets_the_small_model() -> None:
    box = simulated.box("rtx-4090-x1-vm", "vm")
    listed = proposed(box)
    assert [name for name, one in listed.items() if one.fits] == ["qwen3-8b-24gb"]
    assert findings("box", box, None) == []


def test_two_kinds_of_cards_are_told_apart_and_the_narrow_slot_seen() -> None:
    box = simulated.box("two-kinds", "bare")
    told = {one.rule: one.found for one in findings("box", box, None)}
    assert "RTX 3090" in told["box-mixed-cards"]
    assert told["box-pcie-lanes"] == "card 1 runs on 4 of 16 PCIe lanes"
    assert any("RTX 3090" in reason for reason in proposed(box)["qwen3-8b-24gb"].reasons)


def test_a_stale_driver_is_what_speaks_against_every_profile_for_cards() -> None:
    listed = proposed(simulated.box("rtx-pro-6000-x8-stale", "lxc"))
    assert [name for name, one in listed.items() if one.fits] == []
    assert any("570.124.06" in reason for reason in listed["glm-5-nvfp4"].reasons)


def test_a_practice_profile_is_proposed_only_where_cards_are_stand_ins() -> None:
    assert proposed(simulated.box("rtx-4090-x1-vm", "vm"))["tiny-cpu"].reasons == ("for the practice machine",)


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"nodes": "/dev/nvidia0 c3 0 666\n/dev/nvidiactl c3 ff 666\n/dev/nvidia-uvm ee 0 666\n"}, "box-nodes"),
        ({"apt_check": "E: Conflicting values set for option Signed-By\n"}, "box-apt"),
        ({"dpkg_audit": "The following packages are only half configured\n"}, "box-apt"),
        ({"apt_holders": "812\t/usr/bin/unattended-upgrade\n"}, "box-apt"),
        ({"os": "fedora42\nFedora Linux 42\n"}, "box-distribution"),
        ({"detect_virt": "docker\n", "init": "docker\n"}, "box-place"),
    ],
)
@pytest.mark.pain("P21")
def test_what_is_wrong_with_the_machine_is_found(more: dict[str, str], rule: str) -> None:
    box = simulated.box("rtx-4090-x1-vm", "vm", **more)
    assert [one.rule for one in findings("box", box, None) if one.rule == rule]


@pytest.mark.parametrize(
    ("changed", "rule", "said"),
    [
        ({"cards": Answer(127, ""), "driver": Answer(1, ""), "pci": Answer(0, "")}, "box-no-card", "PCI"),
        ({"cards": Answer(9, "NVIDIA-SMI has failed"), "driver": Answer(1, "")}, "box-no-driver", "0000:01:00.0"),
        (
            {"cards": Answer(18, "Failed to initialize NVML: Driver/library version mismatch")},
            "box-nvidia-smi",
            "mismatch",
        ),
        (
            {"nvidiactl": Answer(2, "/bin/sh: 1: cannot open /dev/nvidiactl: Operation not permitted")},
            "box-driver-silent",
            "Operation not permitted",
        ),
    ],
)
@pytest.mark.pain("P05")
def test_cards_that_no_program_can_use_are_named(changed: dict[str, Answer], rule: str, said: str) -> None:
    box = probe.read_box({**simulated.answers("rtx-4090-x1-vm", "vm"), **changed})
    found = [one for one in findings("box", box, None) if one.rule == rule]
    assert found
    assert said in found[0].found
    assert not proposed(box)["qwen3-8b-24gb"].fits


def test_limits_versions_and_servers_are_read() -> None:
    server = {
        "pid": 812,
        "argv": ["python3", "-m", "sglang.launch_server", "--model", "x"],
        "environment": {"NCCL_IB_DISABLE": "1"},
        "secret_flags": [],
        "secret_variables": [],
        "unit": "",
        "folder": "/root",
        "venv": "/root/ml-env",
        "sglang": "0.5.9",
        "torch": "2.9.1",
    }
    box = simulated.box(
        "rtx-4090-x1-vm",
        "vm",
        memory_limit="68719476736\n",
        toolkits="12.8 12.8\n13.1\n",
        venvs="/root/ml-env\t3.11.2\t0.5.9\n/opt/x\t3.12.1\t\n",
        servers=json.dumps([server]),
    )
    assert box.by_hand == box.servers
    assert box.memory_limit == 64 << 30
    assert box.toolkits == {"12.8": "12.8", "13.1": ""}
    assert [(venv.path, venv.sglang) for venv in box.venvs] == [("/root/ml-env", "0.5.9"), ("/opt/x", "")]
    assert box.servers[0].argv[-1] == "x"


def test_a_server_in_a_container_is_named_and_not_adopted() -> None:
    argv = ["python3", "-m", "sglang.launch_server"]
    server = Server(
        1, argv, {}, [], [], unit="", folder="/", venv="", sglang="", torch="", held="docker container 3f2a"
    )
    box = replace(simulated.box("rtx-4090-x1-vm", "vm"), servers=[server])
    assert box.by_hand == []
    assert [one.found for one in findings("box", box, None)] == [
        "process 1 is a model server in docker container 3f2a: that is left alone, and not adopted"
    ]


def test_cgroup_v1_without_a_limit_is_no_limit() -> None:
    assert simulated.box("rtx-4090-x1-vm", "vm", memory_limit="9223372036854771712\n").memory_limit is None


def test_every_question_only_reads() -> None:
    writing = (" rm ", " mv ", " apt-get install", " systemctl start", " systemctl restart", " mkdir ", " tee ", ">>")
    texts = {**questions.HYPERVISOR, **questions.BOX}
    texts["servers"] = texts["servers"].replace(payload.pack(payload.texts("servers")), "")  # any letters may be in it
    script = "\n".join([*texts.values(), *questions.HYPERVISOR.values()])
    assert [word for word in writing if word in script] == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("arch: amd64\nhostname: gpu-a\n\n[snap]\nhostname: old\n", "gpu-a"),
        ("[9lives]\nhostname: gpu-a\n", "gpu-a"),  # no header for Proxmox
        ("hostname: one\nhostname: two\n", "two"),
        ("hostname: gpu-a\r\n[PVE:pending]\r\nhostname: new\r\n", "gpu-a"),
        ("arch: amd64\n", ""),
    ],
)
def test_the_name_of_a_container_is_the_one_that_proxmox_reads(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "lxc").mkdir()
    (tmp_path / "lxc/104.conf").write_bytes(text.encode())
    (tmp_path / "pct").write_text("#!/bin/sh\n")
    (tmp_path / "pct").chmod(0o755)
    script = questions.HYPERVISOR["containers"].replace("/etc/pve/lxc", f"{tmp_path}/lxc")
    script = script.replace("/usr/sbin/pct", f"{tmp_path}/pct").replace("/usr/bin/lxc-info", "true")
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split("\t")[:2] == ["104", name]
