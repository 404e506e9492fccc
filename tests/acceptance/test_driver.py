"""Step `driver`: programs get exactly the kernel module's version, and apt neither moves it nor adds modules."""

import pytest
from testinfra.host import Host

from gpubox.driver import packages as driver
from gpubox.hosts import Box
from gpubox.hypervisor import limits


@pytest.fixture
def module(host: Host) -> str:
    found = driver.module_version(host.check_output("cat /proc/driver/nvidia/version 2>/dev/null || true"))
    if found is None:
        pytest.skip("no NVIDIA kernel module here")
    return found


@pytest.mark.pain("P05", "P06")
def test_libraries_are_the_kernel_modules(host: Host, module: str) -> None:
    for library in driver.LIBRARIES:
        paths = host.check_output("/sbin/ldconfig -p | grep -F %s | grep x86-64 | sed 's/.*=> //'", f"{library} ")
        assert paths, library
        for path in paths.split():
            assert host.check_output("readlink -f %s", path).endswith(f".so.{module}")


@pytest.mark.pain("P05")
def test_packages_are_held_and_no_upgrade_would_move_them(host: Host, box: Box, module: str) -> None:
    if box.settings.driver.source not in {"nvidia", "distribution"}:
        pytest.skip(f"driver.source is {box.settings.driver.source}: no packages")
    installed = host.check_output("dpkg-query -W -f '${db:Status-Abbrev}${Package} ${Version}\\n'")
    names = [line.split()[1] for line in installed.splitlines() if line[1] == "i" and f" {module}-" in line]
    held = host.check_output("apt-mark showhold").split()
    assert names
    assert sorted(set(names) - set(held)) == []
    plan = host.check_output("apt-get -s dist-upgrade --allow-change-held-packages")
    assert [line for line in plan.splitlines() if line.startswith("Inst") and line.split()[1] in names] == []


@pytest.mark.pain("P23", "P10")
def test_apts_own_resolver_refuses_kernel_modules(host: Host, box: Box) -> None:
    if box.settings.hypervisor is None:
        pytest.skip(f"{box.name} has its own kernel")
    for package in ("nvidia-driver", "nvidia-kernel-open-dkms", "nvidia-kernel-dkms", "cuda-drivers"):
        plan = host.run("LC_ALL=C apt-get -s install %s", package)
        assert plan.rc == 100, package
        assert "has no installation candidate" in plan.stderr or "Unable to locate package" in plan.stderr


@pytest.mark.pain("P94")
def test_cards_have_the_limits_of_the_data(host: Host, box: Box, request: pytest.FixtureRequest) -> None:
    """Now, and by a unit that sets them again after a boot; without the setting nothing of it is there."""
    where: Host = request.getfixturevalue("hypervisor") if box.settings.hypervisor else host
    if not box.card_limits:
        assert [path for path in limits.FILES if where.file(path).exists] == []
        return
    cards = limits.parse(where.check_output(limits.QUESTION))
    assert limits.drift(box.card_limits, cards) == []
    assert where.service(limits.UNIT).is_enabled
