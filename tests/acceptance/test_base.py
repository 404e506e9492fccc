"""Step `base`."""

import pytest
from testinfra.host import Host

from gpubox.hosts import Box
from tests.acceptance.limits import ceiling


def test_packages_are_installed(host: Host, box: Box) -> None:
    missing = [name for name in box.settings.base.packages if not host.package(name.partition("=")[0]).is_installed]
    assert missing == []


def test_time_zone(host: Host, box: Box) -> None:
    assert host.file("/etc/localtime").linked_to == f"/usr/share/zoneinfo/{box.settings.base.timezone}"


@pytest.mark.pain("P62")
def test_limits_hold_in_a_new_session(host: Host, box: Box) -> None:
    limits = box.settings.base.limits
    assert host.check_output("ulimit -H -l") == ceiling(host, "-l", limits.memlock)
    assert host.check_output("ulimit -H -n") == ceiling(host, "-n", limits.nofile)


def test_limits_file_is_nobody_elses_to_write(host: Host) -> None:
    file = host.file("/etc/security/limits.d/90-gpubox.conf")
    assert (file.mode, file.user) == (0o644, "root")


def test_kernel_settings_are_live(host: Host, box: Box) -> None:
    live = {key: host.check_output("cat /proc/sys/%s", key.replace(".", "/")) for key in box.settings.base.sysctls}
    assert live == {key: str(value) for key, value in box.settings.base.sysctls.items()}
