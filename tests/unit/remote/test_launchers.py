"""Which process is a model server, and what of its command line is whose."""

import pytest

from gpubox.remote.launchers import launch

FLAGS = ["--model-path", "/m", "--tp", "2"]
M = "sglang.launch_server"


@pytest.mark.parametrize(
    ("argv", "python_args"),
    [
        (["python3", "-m", M], []),
        (["/v/bin/python3.11", "-u", "-m", M], ["-u"]),
        (["python", "-X", "dev", "-W", "ignore", "-m", M], ["-X", "dev", "-W", "ignore"]),
        (["python", "-Xfrozen_modules=off", "-m", M], ["-Xfrozen_modules=off"]),
        (["python", "-um", M], ["-u"]),
        (["python", f"-m{M}"], []),
        (["python", "--check-hash-based-pycs", "always", "-m", M], ["--check-hash-based-pycs", "always"]),
        (["python3", "/opt/lib/python3.11/site-packages/sglang/launch_server.py"], []),
        (["python3", "-u", "python/sglang/launch_server.py"], ["-u"]),
        (["python3", "launch_server.py"], []),
        (["/v/bin/python3", "/v/bin/sglang", "serve"], []),
        (["/v/bin/python3", "-m", "sglang.cli.main", "serve"], []),
        (["/v/bin/python3", "-m", "sglang", "serve"], []),
        (["pypy3", "-m", M], []),
    ],
)
def test_servers(argv: list[str], python_args: list[str]) -> None:
    found = launch([*argv, *FLAGS], "/home/jo/sglang/python/sglang")
    assert found is not None
    assert (found.engine, found.python_args, found.words) == ("sglang", python_args, FLAGS)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["bash", "-c", f"python3 -m {M} --tp 8"],
        ["numactl", "--cpunodebind=0", "--membind=0", "python3", "-m", M],
        ["taskset", "-c", "0-31", "python3", "-m", M],
        ["nice", "-n", "-5", "python3", "-m", M],
        ["env", "A=b", "python3", "-m", M],
        ["conda", "run", "-n", "serve", "python", "-m", M],
        ["/opt/conda/bin/python", "/opt/conda/bin/conda", "run", "-n", "serve", "python", "-m", M],
        ["uv", "run", "python", "-m", M],
        ["/usr/bin/tini", "--", "python3", "-m", M],
        ["docker", "run", "lmsysorg/sglang", "python3", "-m", M],
        ["/v/bin/python", "/v/bin/torchrun", "--nproc-per-node", "1", "-m", M],
        ["/v/bin/python", "-m", "torch.distributed.run", "-m", M],
        ["python3", "-c", "from multiprocessing.spawn import spawn_main", "-m", M],
        ["python3", "-m", "sglang.bench_serving", "serve"],
        ["python3", "-m", "sglang_router.launch_server"],
        ["python3", "/home/jo/other/launch_server.py"],
        ["python3", "/v/bin/sglang", "generate"],
        ["python3", "-m"],
        ["python3"],
        ["vim", "-m", M],
        ["grep", M],
    ],
)
def test_what_only_starts_or_names_one(argv: list[str]) -> None:
    """It starts the server as a process of its own, or becomes it: what /proc shows then is Python's command line."""
    assert launch([*argv, *FLAGS]) is None


def test_an_interpreter_under_another_name_is_known_by_its_file() -> None:
    assert launch(["my-server", "-m", M, *FLAGS]) is None
    assert launch(["my-server", "-m", M, *FLAGS], "", "/opt/conda/bin/python3.11") is not None


@pytest.mark.parametrize(
    ("words", "left", "kind"),
    [
        (["/m", "--tp", "8"], ["--model-path", "/m", "--tp", "8"], ""),
        (["--tp", "8", "--model-type", "llm"], ["--tp", "8"], "llm"),
        (["--model-type=diffusion"], [], "diffusion"),
    ],
)
def test_serve(words: list[str], left: list[str], kind: str) -> None:
    found = launch(["python3", "/v/bin/sglang", "serve", *words])
    assert found is not None
    assert (found.words, found.model_type) == (left, kind)


def test_the_other_engine() -> None:
    for argv in (["python3", "-m", "vllm.entrypoints.openai.api_server"], ["python3", "/v/bin/vllm", "serve", "/m"]):
        found = launch(argv)
        assert found is not None
        assert found.engine == "vllm"
