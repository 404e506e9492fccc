"""The server's command line and environment, out of profile and stack."""

from gpubox.settings.profile import FlagValue, Profile
from gpubox.settings.stack import Stack

RESERVED = ("CUDA_HOME", "CUDA_PATH", "PATH")
"""Variables of the service that come from its stack."""
_CODE = {
    # python(1)
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONEXECUTABLE", "PYTHONPLATLIBDIR"),
    *("PYTHONCASEOK", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONPYCACHEPREFIX", "VIRTUAL_ENV", "CONDA_PREFIX"),
    # ld.so(8), iconv(3), the CUDA driver
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_ORIGIN_PATH", "GCONV_PATH", "CUDA_INJECTION64_PATH"),
    # read in the wheels of sglang 0.5.9 and 0.5.23: packages that it imports, libraries that it loads
    *("SGLANG_EXTERNAL_MODEL_PACKAGE", "SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE", "SGLANG_EXTERNAL_MM_MODEL_ARCH"),
    *("SGLANG_PLUGINS", "SGLANG_HTTP_SERVER_APP_PATH", "SGLANG_NCCL_SO_PATH", "VLLM_NCCL_SO_PATH", "VLLM_PLUGINS"),
}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def changes_code(name: str) -> bool:
    """Whether a variable puts other code into the server than that of its stack."""
    return name in _CODE


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
