"""The driver's userland with Debian's own packages: the exact version, or nothing; and NVIDIA's installer, stood in.

On this box the practice machine's nvidia-smi stands at /usr/local/bin, before the real one of the package at /usr/bin.
"""

from hashlib import sha256
from pathlib import Path

import pytest

from gpubox.driver import packages as driver
from gpubox.lab import driver_run
from tests.faults.packages import LABS_CARD, OLD_CARD, PackageBox, differences, errors

RELEASE, SECURITY, NOWHERE = "535.261.03", "535.309.01", "535.400.01"
LISTS = "/var/lib/apt/lists"


@pytest.fixture(scope="module")
def old(package_box: PackageBox) -> PackageBox:
    """A box with an older card, whose kernel module is of Debian's release version; converged."""
    package_box.sees(OLD_CARD)
    package_box.converge().ended_well()
    return package_box


def versions(box: PackageBox) -> set[str]:
    shown = box.host.check_output("dpkg-query -W -f '${Package} ${Version}\\n' libcuda1 libnvidia-ml1 nvidia-smi")
    return {driver.upstream(line.split()[1]) for line in shown.splitlines()}


@pytest.mark.pain("P05", "P06")
def test_the_modules_version_although_apt_would_choose_another(old: PackageBox) -> None:
    assert versions(old) == {RELEASE}
    without_pins = "apt-cache -o Dir::Etc::PreferencesParts=/nowhere policy libcuda1"
    chosen = old.host.check_output(without_pins)
    assert f"Candidate: {RELEASE}" not in chosen
    assert SECURITY in chosen
    assert old.converge().ended_well().changed == []
    assert old.host.check_output("readlink -f /usr/bin/nvidia-smi").startswith("/usr/lib/nvidia/")
    assert old.host.check_output("command -v nvidia-smi") == "/usr/local/bin/nvidia-smi"


@pytest.mark.pain("P23", "P10")
def test_apts_resolver_brings_no_kernel_module(old: PackageBox) -> None:
    for asked in ("libcuda1 nvidia-smi", "--reinstall libcuda1"):
        plan = old.host.check_output(f"apt-get -s install {asked}")
        assert not any(driver.is_kernel_package(line.split()[1]) for line in plan.splitlines() if line[:5] == "Inst ")
    for name in ("nvidia-driver", "nvidia-kernel-dkms", "nvidia-open-kernel-dkms", "cuda-drivers"):
        refused = old.host.run(f"LC_ALL=C apt-get -s install {name}")
        assert refused.rc == 100
        assert "no installation candidate" in refused.stderr


@pytest.mark.pain("P05")
def test_no_upgrade_moves_it(old: PackageBox) -> None:
    for command in ("apt-get -s dist-upgrade", "apt-get -s dist-upgrade --allow-change-held-packages"):
        plan = old.host.check_output(command)
        assert [
            line for line in plan.splitlines() if line[:5] == "Inst " and ("nvidia" in line or "libcuda" in line)
        ] == []
    old.host.run_expect([0], "apt-get -y -q install --no-install-recommends unattended-upgrades >/dev/null 2>&1")
    rules = "-o Unattended-Upgrade::Origins-Pattern::=origin=*"
    said = old.host.run(f"apt-config {rules} dump | grep Unattended-Upgrade::Package-Blacklist")
    assert "^libcuda" in said.stdout
    done = old.host.run("unattended-upgrade --dry-run --debug 2>&1")
    assert done.rc == 0
    chosen = [line for line in done.stdout.splitlines() if line.startswith("Packages that will be upgraded")]
    assert not any("nvidia" in line or "libcuda" in line for line in chosen)
    old.host.run_expect([0], "apt-get -y -q purge --autoremove unattended-upgrades >/dev/null 2>&1")


@pytest.mark.pain("P05", "P25")
def test_the_module_is_updated_under_it(old: PackageBox) -> None:
    old.sees(OLD_CARD, SECURITY)
    old.converge().ended_well()
    assert versions(old) == {SECURITY}
    assert old.converge().ended_well().changed == []
    before, lists = old.state(), old.host.check_output(f"ls {LISTS}")

    old.sees(OLD_CARD, NOWHERE)
    refused = old.converge()
    assert refused.code == 1
    text = errors(refused.output)
    assert f"kernel module {NOWHERE}" in text
    assert f"installed: {SECURITY}" in text
    assert "the same major version is not enough" in text
    assert differences(before, old.state()) == []
    assert old.host.check_output(f"ls {LISTS}") == lists

    old.sees(OLD_CARD, RELEASE)
    old.converge().ended_well()
    assert versions(old) == {RELEASE}
    assert old.converge().ended_well().changed == []


@pytest.mark.pain("P05")
def test_nvidias_packages_move_together(package_box: PackageBox) -> None:
    package_box.bare()
    package_box.sees(LABS_CARD)
    package_box.wish(driver={"source": "nvidia"})
    package_box.converge().ended_well()
    held = package_box.host.check_output("apt-mark showhold").split()
    assert {"libcuda1", "nvidia-driver-cuda", "nvidia-persistenced"} <= set(held)

    package_box.sees(LABS_CARD, "580.159.04")
    package_box.converge().ended_well()
    shown = package_box.host.check_output("dpkg-query -W -f '${Version}\\n' 'libcuda1*' 'libnvidia-*' 'nvidia-*'")
    assert set(shown.split()) == {"580.159.04-1"}
    assert package_box.host.check_output("apt-mark showhold").split() == held
    assert package_box.converge().ended_well().changed == []


@pytest.mark.pain("P05", "P13")
def test_nvidias_installer(package_box: PackageBox, tmp_path: Path) -> None:
    package_box.bare()
    package_box.sees(LABS_CARD)
    file = tmp_path / "a.run"
    file.write_text(driver_run.text("590.48.01"))
    run = {"version": "590.48.01", "url": str(file), "sha256": sha256(file.read_bytes()).hexdigest()}
    package_box.wish(driver={"source": "run", "runs": [run]})
    package_box.converge().ended_well()
    target = package_box.host.check_output("readlink -f /usr/lib/x86_64-linux-gnu/libcuda.so.1")
    assert target.endswith("libcuda.so.590.48.01")
    assert package_box.converge().ended_well().changed == []

    package_box.host.run_expect([0], "rm /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.*; ldconfig")
    package_box.wish(driver={"source": "run", "runs": [{**run, "sha256": "0" * 64}]})
    refused = package_box.converge()
    assert refused.code == 1
    assert "computed checksum did NOT match" in errors(refused.output)
    package_box.wish(driver={"source": "run", "runs": [run]})
    package_box.converge().ended_well()

    package_box.sees(LABS_CARD, "590.99.01")
    refused = package_box.converge()
    assert refused.code == 1
    assert "kernel module 590.99.01" in errors(refused.output)
    assert "libcuda.so.1 is 590.48.01" in errors(refused.output)


@pytest.mark.pain("P05")
def test_a_userland_of_somebody_else_is_compared(package_box: PackageBox) -> None:
    package_box.bare()
    package_box.sees(LABS_CARD)
    package_box.wish(driver={"source": "none"})
    refused = package_box.converge()
    assert refused.code == 1
    assert "kernel module 590.48.01" in errors(refused.output)
    assert "libcuda.so.1 is not there" in errors(refused.output)
