"""A second run changes nothing; damage made by hand is seen by the acceptance tests, and gone after one run."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.server.service import ENVIRONMENT_PATH, UNIT, UNIT_PATH
from gpubox.support import paths
from tests.deploy import Run

DAMAGES = {
    "a toolkit made the default by hand": (
        "update-alternatives --set cuda /usr/local/cuda-12.8",
        "test_default_is_chosen_through_alternatives",
    ),
    "an edited unit": (f"sed -i s/^Restart=.*/Restart=no/ {UNIT_PATH}", "test_files_are_what_the_profile_makes"),
    "a drop-in, as `systemctl edit` makes it": (
        f"mkdir -p {UNIT_PATH}.d && printf '[Service]\\nMemoryMax=200G\\n' >{UNIT_PATH}.d/override.conf",
        "test_nothing_but_the_unit_says_what_runs",
    ),
    "a folder of kernels that all may write": (
        "chmod 777 /var/lib/gpubox/jit/*",
        "test_folders_are_roots_alone",
    ),
    "an emptied file of the venv": (
        ": > /root/ml-env/lib/python3.11/site-packages/fastapi/applications.py",
        "test_files_of_the_venv_are_as_built",
    ),
    "a stopped service": (f"systemctl stop {UNIT}", "test_unit_is_active"),
    "a disabled service": (f"systemctl disable {UNIT}", "test_unit_is_enabled"),
    "a removed OS package": ("dpkg --purge --force-depends ninja-build", "test_packages_are_installed"),
    "a changed file in the venv's metadata": (
        "echo x >> /root/ml-env/lib/python3.11/site-packages/fastapi-*.dist-info/METADATA",
        "test_metadata_of_the_venv_is_whole",
    ),
    "a removed Python package": (
        "rm -r /root/ml-env/lib/python3.11/site-packages/orjson*",
        "test_packages_equal_the_lock",
    ),
    "secrets readable by all": (f"chmod 644 {ENVIRONMENT_PATH}", "test_environment_file_is_roots_alone"),
    "a second source for the same packages": (
        "echo 'deb http://10.87.0.10:8080/cuda/debian12/x86_64/ /' > /etc/apt/sources.list.d/cuda-debian12-x86_64.list",
        "test_one_signed_source",
    ),
    "another time zone": ("ln -sfn /usr/share/zoneinfo/Europe/Berlin /etc/localtime", "test_time_zone"),
    "a kernel setting changed by hand": ("sysctl -q -w net.core.somaxconn=128", "test_kernel_settings_are_live"),
    "a limits file that all may write": (
        "chmod 666 /etc/security/limits.d/90-gpubox.conf",
        "test_limits_file_is_nobody_elses_to_write",
    ),
    "a deleted compiler": ("rm /usr/local/cuda-12.8/bin/nvcc", "test_toolkits_are_installed_side_by_side"),
}
ON_THE_HYPERVISOR = {
    "a deleted device line": (
        "sed -i '/devices.allow = c 195:3 /d' /var/lib/lxc/%s/config",
        "test_the_configuration_allows_the_majors_of_now",
    ),
}


@pytest.fixture(scope="module")
def converged(deploy: Callable[[], Run]) -> None:
    deploy().ended_well()


@pytest.mark.pain("P38")
def test_a_second_run_changes_nothing(converged: None, deploy: Callable[[], Run], on_box: Host) -> None:
    before = started(on_box)
    assert deploy().ended_well().changed == []
    assert started(on_box) == before


@pytest.mark.pain("P20", "P21")
def test_damage_is_seen_and_repaired_in_one_run(
    converged: None, deploy: Callable[[], Run], boxes: Inventory, gpu01: Box, on_box: Host, on_hypervisor: Host
) -> None:
    container = gpu01.settings.container
    assert container is not None
    for command, _ in DAMAGES.values():
        on_box.run_expect([0], command)
    for command, _ in ON_THE_HYPERVISOR.values():
        on_hypervisor.run_expect([0], command, container.name)

    failed = failed_acceptance_tests(boxes, gpu01)
    unseen = [name for name, (_, test) in (DAMAGES | ON_THE_HYPERVISOR).items() if test not in failed]
    assert unseen == []

    deploy().ended_well()
    assert failed_acceptance_tests(boxes, gpu01) == set()
    assert deploy().ended_well().changed == []


def started(on_box: Host) -> str:
    return str(on_box.check_output("systemctl show --property=MainPID,ExecMainStartTimestampMonotonic %s", UNIT))


def failed_acceptance_tests(boxes: Inventory, box: Box) -> set[str]:
    words = ["-q", "--tb=no", "tests/acceptance", f"--inventory={boxes.path}", f"--hosts={box.name}"]
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.root())
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {line.split("::")[1].split("[")[0] for line in lines}
