"""The server's command line and environment, out of profile and stack."""

from gpubox.settings.profile import FlagValue, Profile
from gpubox.settings.stack import Stack

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def argv(profile: Profile, venv_path: str, more: dict[str, FlagValue] | None = None) -> list[str]:
    """The command line, as systemd starts it: the venv's python, then SGLang's own flags in the profile's order.

    + more: flags that do not come from the profile
    """
    words = flags({**profile.flags, **(more or {})})
    return [f"{venv_path}/bin/python3", *profile.python_args, "-m", "sglang.launch_server", *words]


def flags(values: dict[str, FlagValue]) -> list[str]:
    """Flags as words. true: the bare flag; false or null: nothing; a list: the flag, then each value."""
    words: list[str] = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words += [str(part) for part in (value if isinstance(value, list) else [value])]
    return words


def environment(profile: Profile, stack: Stack, venv_path: str) -> dict[str, str]:
    """The service's environment: the profile's, CUDA_HOME of the stack, a PATH that finds that toolkit's nvcc first.

    FlashInfer takes nvcc from CUDA_HOME, then from PATH, then from /usr/local/cuda (read in flashinfer 0.6.7.post2), so
    the service never depends on the system's default toolkit.
    """
    home = stack.cuda_home_path
    return {**profile.environment, "CUDA_HOME": home, "PATH": f"{venv_path}/bin:{home}/bin:{_SYSTEM_PATH}"}
