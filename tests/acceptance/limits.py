"""What a box can have of the limits it wishes for."""

from testinfra.host import Host

CAP_SYS_RESOURCE = 1 << 24


def ceiling(host: Host, option: str, wished: str | int) -> str:
    """The wish, or where the box may not raise limits (no CAP_SYS_RESOURCE), what its first process was given.

    + option: as the shell's `ulimit` takes it
    """
    capabilities = int(host.check_output("sed -n 's/^CapBnd:\\s*//p' /proc/1/status"), 16)
    if capabilities & CAP_SYS_RESOURCE:
        return str(wished)
    kernel = {"-l": ("Max locked memory", 1024), "-n": ("Max open files", 1)}[option]
    given = host.check_output(f"grep '^{kernel[0]}' /proc/1/limits").removeprefix(kernel[0]).split()[1]
    return str(given if given == "unlimited" else int(given) // kernel[1])
