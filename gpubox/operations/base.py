"""Time zone and kernel settings."""

from collections.abc import Callable, Mapping

from pyinfra import host, logger
from pyinfra.api import QuoteString, StringCommand

from gpubox.facts.base import Sysctl
from gpubox.operations import Commands, operation


@operation()
def timezone(zone: str, look: Callable[[], str]) -> Commands:
    """
    Set the time zone: /etc/localtime, and /etc/timezone for those that still read it.

    + zone: below /usr/share/zoneinfo, as `Etc/UTC`; one that is not there fails with its name
    + look: gives the present one
    """
    if look() != zone:
        file = QuoteString(f"/usr/share/zoneinfo/{zone}")
        yield StringCommand("test -f", file, "|| { echo no time zone", QuoteString(zone), ">&2; exit 1; }")
        yield StringCommand("printf '%s\\n'", QuoteString(zone), "> /etc/timezone")
        beside = "/etc/localtime.gpubox-new"
        yield StringCommand("ln -sfnT", file, beside, "&& mv -fT", beside, "/etc/localtime")


@operation()
def sysctls(wanted: Mapping[str, int | str], look: Callable[[], Mapping[str, Sysctl]]) -> Commands:
    """
    Set kernel settings that differ in the running kernel (the file in sysctl.d is for the next boot).

    + wanted: name -> value
    + look: gives name -> Sysctl of the host; one that may not be set here (a container's read-only /proc/sys) is said
      and left
    """
    present = look()
    for key, value in wanted.items():
        if present[key].value.split() == str(value).split():
            continue
        if present[key].access == "absent":
            logger.warning(f"{host.print_prefix}{key}: this kernel has no such setting; left")
            continue
        if present[key].access != "rw":
            logger.warning(f"{host.print_prefix}{key} may not be set here: set it to {value} on the hypervisor")
            continue
        yield StringCommand("sysctl -q -w", QuoteString(f"{key}={value}"))
