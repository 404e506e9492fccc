"""Profile to command line."""

import pytest

from gpubox.server.command import argv, environment, flags
from gpubox.settings import profile, stack
from gpubox.settings.profile import FlagValue


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tp": 8, "mem-fraction-static": 0.92}, "--tp 8 --mem-fraction-static 0.92"),
        ({"trust-remote-code": True, "disable-cuda-graph": False, "revision": None}, "--trust-remote-code"),
        ({"cuda-graph-bs-decode": [1, 2, 4], "port": 8000}, "--cuda-graph-bs-decode 1 2 4 --port 8000"),
    ],
)
def test_flags(values: dict[str, FlagValue], words: str) -> None:
    assert flags(values) == words.split()


def test_the_service_runs_the_venvs_python_with_its_stacks_toolkit() -> None:
    wish = profile.load("tiny-cpu")
    assert argv(wish, "/root/ml-env")[:3] == ["/root/ml-env/bin/python3", "-m", "sglang.launch_server"]
    variables = environment(wish, stack.load(wish.stack), "/root/ml-env")
    assert variables["CUDA_HOME"] == "/usr/local/cuda-13.1"
    assert variables["PATH"].split(":")[:2] == ["/root/ml-env/bin", "/usr/local/cuda-13.1/bin"]
