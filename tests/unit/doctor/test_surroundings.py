"""The doctor about what is around a server: refusing device cgroups, proxies, NVSwitches, a
driver that waits."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api import Host
from typing_extensions import override

from gpubox import rules
from gpubox.doctor import above, judge, surroundings
from gpubox.doctor.look import Looks
from gpubox.facts.answers import Answer
from gpubox.hosts import Box, Hypervisor
from gpubox.hypervisor import nodes
from gpubox.hypervisor.state import Inside
from gpubox.onboard import probe
from gpubox.operations import cards
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings, Container, HypervisorSettings
from tests.unit import simulated


def box_of(name: str, hypervisor: str | None = None) -> Box:
    wish = profile.load(name)
    container = Container(name="gpu01") if hypervisor else None
    settings = BoxSettings(profile=name, hypervisor=hypervisor, container=container)
    return Box("gpu01", settings, wish, stack.load(wish.stack), {"ssh_hostname": "192.0.2.21"})


@pytest.mark.parametrize(
    ("answers", "hypervisor", "says"),
    [
        ("sh: 1: cannot open /dev/nvidiactl: Operation not permitted", "pve01", "the container anew on pve01"),
        ("sh: 1: cannot open /dev/nvidiactl: Operation not permitted", None, "docker restart"),
        ("sh: 1: cannot open /dev/nvidiactl: No such device or address", None, ""),
    ],
)
@pytest.mark.pain("P97")
def test_nodes_that_are_there_and_refused_are_no_matter_of_the_driver(
    answers: str, hypervisor: str | None, says: str
) -> None:
    given = simulated.answers("rtx-pro-6000-x8", "lxc")
    said = "Failed to initialize NVML: Unknown Error\n"
    given.update(nvidiactl=Answer(2, answers), cards=Answer(255, said))
    gpus = probe.read_box(given).gpus
    assert surroundings.is_refused(gpus) is bool(says)
    cure = surroundings.cure_of_refusal(box_of("glm-5-nvfp4", hypervisor), "pyinfra -y x.py deploy.py")
    if says:
        assert says in cure
        assert "daemon-reload" in cure
        assert "no driver" in cure


@pytest.mark.pain("P97")
def test_the_deploy_refuses_such_a_container_without_asking_for_a_driver(caplog: pytest.LogCaptureFixture) -> None:
    on, nobody = cast(Host, SimpleNamespace(print_prefix="[gpu01] ")), cast(Any, None)
    with caplog.at_level("ERROR", logger="pyinfra"):
        assert not cards._refuse(nobody, on, "stack", "Operation not permitted")
        assert "start the container anew" in caplog.text
        assert "load the driver" not in caplog.text
        caplog.clear()
        assert not cards._refuse(nobody, on, "stack", "No such file or directory")
    assert "load the driver" in caplog.text


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("", "pass", "none"),
        ("http_proxy=set\n", "warn", "NO_PROXY=127.0.0.1,localhost,0.0.0.0,::1,192.0.2.21"),
        ("http_proxy=set\nno_proxy=127.0.0.1,localhost,0.0.0.0,::1,192.0.2.21\n", "pass", "with exceptions"),
        ("https_proxy=set\n", "pass", "none"),
    ],
)
@pytest.mark.pain("P95")
def test_proxies_of_a_login(text: str, status: str, says: str) -> None:
    seen = simulated.box("rtx-pro-6000-x8", "bare", login_proxies=text)
    check = surroundings.proxies(box_of("glm-5-nvfp4"), seen)
    assert check.status == status
    assert says in f"{check.found} {check.cure}"


@pytest.mark.pain("P95")
def test_a_proxy_of_systemd_is_a_broken_rule_and_its_password_is_nowhere() -> None:
    seen = simulated.box("rtx-pro-6000-x8", "bare", proxies="HTTP_PROXY=set\nNO_PROXY=$'localhost,.example.com'\n")
    assert seen.proxies == {"HTTP_PROXY": "set", "NO_PROXY": "localhost,.example.com"}
    found = {finding.rule: finding for finding in rules.check(box_of("tiny-cpu"), seen.facts())}
    assert found["proxy-inherited"].severity == "error"
    assert "localhost,.example.com,127.0.0.1" in found["proxy-inherited"].todo


UNIT = "LoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\n"


@pytest.mark.parametrize(
    ("fabric", "states", "hypervisor", "says"),
    [
        (f"kind nvswitch\nversion 580.105.08\n{UNIT}", "", None, "it takes no other version"),
        ("", "State=In Progress\nStatus=N/A\n" * 8, None, "8 of 8 cards: fabric state In Progress"),
        ("", "", None, "nvidia-fabricmanager.service"),
        ("", "", "pve01", "pve01's to run"),
    ],
)
@pytest.mark.pain("P96")
def test_error_802_is_told_with_its_cause(fabric: str, states: str, hypervisor: str | None, says: str) -> None:
    tries = json.dumps({"tries": [{"code": 802, "s": 0.5}] * 3})
    answers = {"cuinit": tries, "fabric": fabric, "fabric-states": states}
    looks = Looks({name: Answer(0, text) for name, text in answers.items()})
    seen = simulated.box("h200-x1", "bare")
    check = judge._cuda_start(box_of("glm-5-nvfp4", hypervisor), looks, seen, "")
    assert check.status == "fail"
    assert says in check.cure


@pytest.mark.parametrize(
    ("on_disk", "fabric", "status", "says"),
    [
        ("", "", "pass", "driver 580.95.05"),
        ("580.95.05\n", "", "pass", "driver 580.95.05"),
        ("580.105.08\n", "", "warn", "580.95.05 is loaded and 580.105.08 lies on disk"),
        ("", "kind nvswitch\nversion \nLoadState=not-found\n", "fail", "no fabric manager"),
    ],
)
@pytest.mark.pain("P96", "P98")
def test_the_hypervisors_driver(on_disk: str, fabric: str, status: str, says: str) -> None:
    devices = "Character devices:\n195 nvidia\n511 nvidia-uvm\n"
    state = SimpleNamespace(
        cards=[], driver="580.95.05", proc_devices=devices, state="running", inside=Inside(),
        nodes={node.path: node for node in nodes.needed(devices, [])},
    )  # fmt: skip
    answers = {"module-on-disk": Answer(0, on_disk), "fabric": Answer(0, fabric)}

    class Seen(Looks):
        @override
        def fact(self, fact: Any, name: str) -> Any:
            return state

    held = Hypervisor("pve01", HypervisorSettings())
    check = above.check(held, box_of("tiny-cpu", "pve01"), Seen(answers), "deploy")
    assert (check.status, says in check.found) == (status, True)


@pytest.mark.pain("P98")
def test_an_upgraded_driver_on_bare_metal_is_a_line_of_the_rules() -> None:
    box = box_of("glm-5-nvfp4")
    texts = {"module_on_disk": "590.126.09\n", "reboot_required": "nvidia-dkms-590\nlinux-image-6.8.0-90-generic\n"}
    seen = simulated.box("rtx-pro-6000-x8", "bare", **texts)
    assert seen.gpus.reboot_for == ["linux-image-6.8.0-90-generic", "nvidia-dkms-590"]
    found = [finding.rule for finding in rules.check(box, seen.facts())]
    assert "driver-on-disk" in found
    facts = replace(seen, gpus=replace(seen.gpus, on_disk=seen.gpus.driver, reboot_for=[])).facts()
    assert "driver-on-disk" not in [finding.rule for finding in rules.check(box, facts)]
