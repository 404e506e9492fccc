"""What counts as evidence of bare metal, LXC and a virtual machine."""

import pytest

from gpubox.nccl.place import Signs, judge


@pytest.mark.parametrize(
    ("signs", "place", "why"),
    [
        (Signs(init="lxc", cpu_flag=True), "lxc", "process 1"),
        (Signs(init="lxc", detect_virt="none", dmi="Supermicro AS-8125GS"), "lxc", "process 1"),
        (Signs(run_container="lxc", cpu_flag=True), "lxc", "/run/systemd/container"),
        (Signs(detect_virt="lxc"), "lxc", "systemd-detect-virt"),
        (Signs(init="docker", detect_virt="docker"), None, "docker"),
        (Signs(detect_virt="kvm", dmi="QEMU Standard PC (Q35 + ICH9, 2009)", cpu_flag=True), "vm", "kvm"),
        (Signs(dmi="QEMU Standard PC (Q35 + ICH9, 2009)", cpu_flag=True), "vm", "firmware"),
        (Signs(dmi="Microsoft Corporation Virtual Machine"), "vm", "firmware"),
        (Signs(cpu_flag=True, dmi="Unknown"), "vm", "CPU flag"),
        (Signs(detect_virt="none", dmi="Supermicro AS-8125GS"), "bare", "none"),
        (Signs(dmi="Supermicro AS-8125GS"), "bare", "firmware says Supermicro"),
        (Signs(), None, "no systemd-detect-virt"),
        (Signs(detect_virt="none", cpu_flag=True), "vm", "CPU flag"),
    ],
)
def test_the_strongest_sign_counts(signs: Signs, place: str | None, why: str) -> None:
    judged = judge(signs)
    assert judged.place == place
    assert why in judged.why
