"""A running server becomes a profile: the same command line, the same environment, no secrets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from gpubox.onboard import adoption
from gpubox.onboard.state import Server
from gpubox.remote import secrets
from gpubox.remote import servers as onbox
from gpubox.server import command
from gpubox.settings import profile
from gpubox.support.data import validated
from gpubox.support.errors import GpuboxError

LINE = (
    "--model lukealonso/GLM-5-NVFP4 --served-model-name glm-5 --reasoning-parser glm45 --tool-call-parser glm47 "
    "--trust-remote-code --tp 8 --mem-fraction-static 0.92 --kv-cache-dtype auto --quantization modelopt_fp4 "
    "--attention-backend flashinfer --fp8-gemm-backend cutlass --nsa-decode-backend trtllm "
    "--enable-flashinfer-allreduce-fusion --disable-cuda-graph --host 0.0.0.0 --port 8000"
)
RECORDED = LINE.split()
SERVER = Server(
    pid=812,
    argv=["/root/ml-env/bin/python3", "-u", "-m", "sglang.launch_server", *RECORDED],
    environment={"NCCL_P2P_LEVEL": "5", "OMP_NUM_THREADS": "8", "CUDA_HOME": "/usr/local/cuda-12.8"},
    secret_flags=[],
    secret_variables=[],
    unit="",
    folder="/root",
    venv="/root/ml-env",
    sglang="0.5.9",
    torch="2.9.1",
)


def loaded(adopted: adoption.Adopted, cards: Sequence[str] = ()) -> profile.Profile:
    text = adoption.profile_text(adopted, "as it ran", "throughput", "2026-11-29", cards)
    values: dict[str, Any] = yaml.safe_load(text)
    return validated(profile.Profile, {"name": "adopted", **values}, "adopted")


def test_the_recorded_command_line_comes_back_word_for_word() -> None:
    found = loaded(adoption.adopt(SERVER))
    assert command.argv(found, "/root/ml-env")[1:] == SERVER.argv[1:]
    assert found.stack == "sglang-0.5.9-cu128"
    assert found.environment == {"NCCL_P2P_LEVEL": "5", "OMP_NUM_THREADS": "8"}
    assert found.notes == []


@pytest.mark.parametrize(
    "words",
    [
        "--model-path /m --cuda-graph-bs-decode 1 2 3 4 --trust-remote-code",
        "--model-path /m --mem-fraction-static 0.920 --port 08000 --schedule-conservativeness 1e-3",
        '--model-path /m --model-loader-extra-config {"enable_multithread_load":true}',
        "--model-path true --served-model-name null --dtype 1.0 --x -1",
    ],
)
def test_words_come_back_as_they_were(words: str) -> None:
    server = replace(SERVER, argv=["python3", "-m", "sglang.launch_server", *words.split()])
    assert command.argv(loaded(adoption.adopt(server)), "/v")[3:] == words.split()


@pytest.mark.parametrize(
    ("argv", "python_args", "flags"),
    [
        (["/v/bin/python", "-m", "sglang.launch_server", "--model", "/m"], [], {"model": "/m"}),
        (["python3", "-u", "-X", "dev", "-m", "sglang.launch_server", "--tp", "8"], ["-u", "-X", "dev"], {"tp": 8}),
        (["/v/bin/python3", "/v/bin/sglang", "serve", "--model-path", "/m"], [], {"model-path": "/m"}),
        (["/v/bin/python3", "-u", "/v/bin/sglang", "serve", "/m", "--tp", "8"], ["-u"], {"model-path": "/m", "tp": 8}),
        (["python3", "-m", "sglang.launch_server", "--served-model-name", "serve"], [], {"served-model-name": "serve"}),
    ],
)
def test_every_way_to_start_it_is_read(argv: list[str], python_args: list[str], flags: dict[str, Any]) -> None:
    adopted = adoption.adopt(replace(SERVER, argv=argv))
    assert (adopted.python_args, adopted.flags) == (python_args, flags)
    assert onbox._is_server(argv)


@pytest.mark.parametrize(
    "argv",
    [
        ["bash", "-c", "python3 -m sglang.launch_server --tp 8"],
        ["docker", "run", "lmsysorg/sglang", "python3", "-m", "sglang.launch_server"],
        ["sudo", "python3", "-m", "sglang.launch_server"],
        ["uv", "run", "python", "-m", "sglang.launch_server"],
        ["python3", "-c", "from multiprocessing.spawn import spawn_main"],
    ],
)
def test_what_only_starts_a_server_is_none(argv: list[str]) -> None:
    assert not onbox._is_server(argv)


@pytest.mark.parametrize(
    ("groups", "here", "held"),
    [
        ("0::/system.slice/glm.service\n", True, ""),
        ("0::/user.slice/user-0.slice/session-3.scope\n", True, ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/tmux.scope\n", True, ""),
        (f"0::/system.slice/docker-{'3f2a' * 16}.scope\n", False, "docker container 3f2a3f2a3f2a"),
        (f"0::/system.slice/docker-{'3f2a' * 16}.scope\n", True, "docker container 3f2a3f2a3f2a"),
        (f"5:cpu:/docker/{'3f2a' * 16}\n", False, "docker container 3f2a3f2a3f2a"),
        (f"0::/machine.slice/libpod-{'3f2a' * 16}.scope/container\n", False, "libpod container 3f2a3f2a3f2a"),
        ("0::/lxc/101/ns/system.slice/glm.service\n", False, "a container"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/glm.service\n", True, "glm.service of a user"),
    ],
)
def test_who_holds_a_server_is_told_by_its_control_group(groups: str, here: bool, held: str) -> None:
    assert onbox.holder(groups, here) == held


def test_another_user_and_its_cache_come_along() -> None:
    cache = "/home/jane/.cache/huggingface/hub"
    adopted = adoption.adopt(replace(SERVER, user="jane", cache=cache, empty_variables=("NCCL_GRAPH_FILE",)))
    assert adopted.hub_cache == cache
    assert adopted.notes == ["left out, as they are empty: NCCL_GRAPH_FILE", "it ran as jane; the service runs as root"]
    assert adoption.adopt(replace(SERVER, cache="/root/.cache/huggingface/hub")).hub_cache == ""
    named = replace(SERVER, cache=cache, environment={"HF_HOME": "/home/jane/.cache/huggingface"})
    assert adoption.adopt(named).hub_cache == ""


def test_a_flag_with_equals_means_the_same() -> None:
    assert adoption.flags(["--tp=8", "--json-model-override-args={}"])[0] == {
        "tp": 8,
        "json-model-override-args": "{}",
    }


def test_a_flag_that_stands_twice_is_told_and_the_last_counts() -> None:
    found, notes = adoption.flags(["--tp", "4", "--port", "1", "--tp", "8"])
    assert found == {"port": 1, "tp": 8}
    assert notes == ["--tp stood twice: the last counts"]


def test_the_api_key_leaves_the_profile_and_is_named() -> None:
    argv, secret = onbox.masked([*SERVER.argv, "--api-key", "hunter2"])
    assert "hunter2" not in argv
    adopted = adoption.adopt(replace(SERVER, argv=argv, secret_flags=secret))
    assert adopted.api_key
    assert "api-key" not in loaded(adopted).flags


def test_secrets_without_a_place_are_told() -> None:
    adopted = adoption.adopt(replace(SERVER, secret_variables=["HF_TOKEN", "WANDB_API_KEY"]))
    assert adopted.hub_token == "HF_TOKEN"
    assert adopted.notes == ["secret, with no place in gpubox, left out: WANDB_API_KEY"]


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (replace(SERVER, sglang="0.5.7"), "no stack for SGLang 0.5.7 on cuda"),
        (replace(SERVER, argv=["python3", "-m", "vllm.entrypoints.openai.api_server"]), "is not SGLang"),
        (replace(SERVER, argv=["python3", "-m", "sglang.launch_server", "x"]), "'x' before any flag"),
        (replace(SERVER, relative=("./glm",)), "paths seen from /root: ./glm"),
        (replace(SERVER, argv=[*SERVER.argv, "--config", "f"], secret_flags=["api-key"]), "--api-key and --config"),
    ],
)
def test_what_cannot_be_adopted_is_said(server: Server, said: str) -> None:
    with pytest.raises(GpuboxError, match=said):
        adoption.adopt(server)


@pytest.mark.parametrize(
    ("cards", "wanted"),
    [
        (["NVIDIA RTX PRO 6000 Blackwell Server Edition"] * 8, profile.Cards(model="rtx-pro-6000", count=8)),
        (["NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"] * 8, profile.Cards(model="rtx-pro-6000", count=8)),
        (["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090"], None),
        (["NVIDIA Something"], None),
        ([], None),
    ],
)
def test_cards_and_model_of_the_catalogue_are_named(cards: list[str], wanted: profile.Cards | None) -> None:
    found = loaded(adoption.adopt(SERVER), cards=cards)
    assert found.cards == wanted
    assert found.model.catalog == "glm-5-nvfp4"


def test_a_model_of_the_hub_keeps_the_commit_that_lies_in_its_cache() -> None:
    assert loaded(adoption.adopt(replace(SERVER, revision="a" * 40))).model.revision == "a" * 40


def test_another_release_on_purpose_is_noted() -> None:
    adopted = adoption.adopt(replace(SERVER, sglang="0.5.7"), "sglang-0.5.23-cu130")
    assert adopted.notes[0].startswith("SGLang 0.5.7 becomes 0.5.23")
    assert "CUDA_HOME /usr/local/cuda-12.8 becomes /usr/local/cuda-13.1" in adopted.notes[1]


@pytest.mark.parametrize(
    ("words", "masked", "flags"),
    [
        (["--api-key", "k"], ["--api-key", secrets.MASK], ["api-key"]),
        (["--api-key=k", "--port", "1"], [f"--api-key={secrets.MASK}", "--port", "1"], ["api-key"]),
        (["--api-k", "k"], ["--api-k", secrets.MASK], ["api-key"]),
        (["--admin-api-key", "k"], ["--admin-api-key", secrets.MASK], ["admin-api-key"]),
        (["--model", "api-key"], ["--model", "api-key"], []),
    ],
)
def test_secret_words_are_masked_on_the_box(words: list[str], masked: list[str], flags: list[str]) -> None:
    assert onbox.masked(words) == (masked, flags)


def test_the_session_is_left_out_of_the_environment_and_secrets_are_only_named() -> None:
    pairs = ["PATH=/bin", "LC_ALL=C", "SSH_TTY=/dev/pts/0", "NCCL_IB_DISABLE=1", "EMPTY=", "HF_TOKEN=t", "A_KEY=k"]
    pairs += ["PIP_CERT=/c", "http_proxy=http://p"]
    login = {"PIP_CERT": "/c", "NCCL_IB_DISABLE": "1", "http_proxy": "http://other"}
    kept = {"NCCL_IB_DISABLE": "1", "http_proxy": "http://p"}
    assert onbox.environment(pairs, login) == (kept, ["A_KEY", "HF_TOKEN"], ["PIP_CERT"])


@pytest.mark.parametrize(
    "pair",
    ["https_proxy=http://jane:hunter2@proxy:3128", "PGPASSWORD=x", "MY_HUB=hf_abcdefghijkl", "OPENAI=sk-abcdefghijkl"],
)
def test_a_secret_is_known_by_its_name_or_its_look(pair: str) -> None:
    assert onbox.environment([pair], {}) == ({}, [pair.partition("=")[0]], [])


@pytest.mark.parametrize(
    "pair", ["TOKENIZERS_PARALLELISM=false", "MONKEY=1", "MASTER_ADDR=tcp://10.0.0.1:29500", "SK=sk-1"]
)
def test_what_only_looks_like_one_is_kept(pair: str) -> None:
    assert onbox.environment([pair], {})[1] == []
