"""The shipped profiles: the recorded ones token for token, the current ones without a fault, and their comparison."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubox import rules
from gpubox.cli.profiles import command as cli
from gpubox.hosts import Box
from gpubox.server import command
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings
from gpubox.settings.profile import FlagValue
from gpubox.support import paths
from gpubox.support.errors import GpuboxError

# Facts of the recorded runs, as literal text.
RECORDED = {
    "recorded/glm-5-vm": (
        """NCCL_IB_DISABLE=1 NCCL_P2P_LEVEL=PHB NCCL_ALLOC_P2P_NET_LL_BUFFERS=1 NCCL_MIN_NCHANNELS=8
        OMP_NUM_THREADS=8 SAFETENSORS_FAST_GPU=1 CUDA_HOME=/usr/local/cuda-12.8""",
        """python3 -m sglang.launch_server
        --model lukealonso/GLM-5-NVFP4 --served-model-name glm-5
        --reasoning-parser glm45 --tool-call-parser glm47 --trust-remote-code
        --tp 8 --mem-fraction-static 0.92 --max-running-requests 64
        --kv-cache-dtype auto --quantization modelopt_fp4
        --attention-backend flashinfer --fp8-gemm-backend cutlass
        --nsa-decode-backend trtllm --nsa-prefill-backend trtllm
        --moe-runner-backend flashinfer_cutlass
        --disable-custom-all-reduce --enable-flashinfer-allreduce-fusion
        --host 0.0.0.0 --port 8000""",
    ),
    "recorded/glm-5-lxc": (
        """PYTHONUNBUFFERED=1 NCCL_IB_DISABLE=1 NCCL_P2P_LEVEL=5 NCCL_MIN_NCHANNELS=8
        OMP_NUM_THREADS=8 SAFETENSORS_FAST_GPU=1 CUDA_HOME=/usr/local/cuda-12.8""",
        """python3 -u -m sglang.launch_server
        --model lukealonso/GLM-5-NVFP4 --served-model-name glm-5
        --reasoning-parser glm45 --tool-call-parser glm47 --trust-remote-code
        --tp 8 --mem-fraction-static 0.92
        --kv-cache-dtype auto --quantization modelopt_fp4
        --attention-backend flashinfer --fp8-gemm-backend cutlass
        --nsa-decode-backend trtllm --nsa-prefill-backend trtllm
        --moe-runner-backend flashinfer_cutlass
        --enable-flashinfer-allreduce-fusion --disable-cuda-graph
        --host 0.0.0.0 --port 8000""",
    ),
}
CURRENT = ["glm-5-nvfp4", "glm-5-nvfp4-vm", "qwen3-8b-24gb", "tiny-cpu"]
HISTORY = ["recorded/glm-5-lxc", "recorded/glm-5-vm", "recorded/kimi-k2-thinking"]


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_deployment_is_rendered_token_for_token(name: str) -> None:
    environment, line = RECORDED[name]
    wish = profile.load(name)
    words = command.argv(wish, "/root/ml-env")
    assert [Path(words[0]).name, *words[1:]] == line.split()
    variables = command.environment(wish, stack.load(wish.stack), "/root/ml-env")
    del variables["PATH"]  # the recorded runs had their shell's
    assert variables == dict(pair.split("=", 1) for pair in environment.split())


@pytest.mark.parametrize("name", HISTORY)
def test_a_recorded_deployment_needs_exactly_the_overrides_that_it_names(name: str) -> None:
    wish = profile.load(name)
    found = rules.check(Box("box", BoxSettings(profile=name), wish, stack.load(wish.stack)))
    assert {f.rule for f in found if f.severity in {"error", "unknown"}} == set(wish.required_overrides)


@pytest.mark.parametrize("name", CURRENT)
@pytest.mark.pain("P44", "P46", "P47")
def test_a_current_profile_has_no_fault(name: str) -> None:
    wish = profile.load(name)
    found = rules.check(Box("box", BoxSettings(profile=name, exposure="private-network"), wish, stack.load(wish.stack)))
    assert [f for f in found if f.severity != "info"] == []


@pytest.mark.parametrize("name", CURRENT)
def test_each_choice_of_a_current_profile_has_a_source(name: str) -> None:
    wish = profile.load(name)
    assert {*wish.flags, *wish.environment} <= {reason.setting for reason in wish.reasons}
    for reason in wish.reasons:
        assert reason.why
        assert reason.source


def test_kimi_against_glm_as_it_was_once_done_by_eye() -> None:
    done = CliRunner().invoke(cli, ["diff", "recorded/kimi-k2-thinking", "recorded/glm-5-lxc", "--json"])
    shown = json.loads(done.output)
    assert shown["--attention-backend"] == ["triton", "flashinfer"]
    assert shown["--max-running-requests"] == ["2048", None]
    assert shown["NCCL_P2P_LEVEL"] == [None, "5"]
    assert "--moe-runner-backend" not in shown


def test_one_flag_under_two_names_is_no_difference() -> None:
    done = CliRunner().invoke(cli, ["diff", "recorded/glm-5-lxc", "glm-5-nvfp4", "--json"])
    assert "--tensor-parallel-size" not in json.loads(done.output)


def test_a_child_keeps_the_parents_reasons_but_for_its_own() -> None:
    reasons = {r.setting: r.why for r in profile.load("glm-5-nvfp4-vm").reasons}
    assert "zeros" in reasons["disable-custom-all-reduce"]
    assert "256 fits" in reasons["cuda-graph-max-bs-decode"]


@pytest.mark.parametrize("name", ["glm-5-nvfp4-vm", "recorded/glm-5-lxc"])
def test_show_names_every_setting(name: str) -> None:
    done = CliRunner().invoke(cli, ["show", name], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for setting in [*profile.load(name).flags, *profile.load(name).environment]:
        assert setting in done.output


def test_a_source_is_shown_whole_on_a_narrow_terminal() -> None:
    done = CliRunner().invoke(cli, ["show", "glm-5-nvfp4"], env={"COLUMNS": "80"})
    words = "".join(line.rsplit("│", 2)[-2].strip() for line in done.output.splitlines() if line.startswith("│"))
    assert "https://github.com/sgl-project/sglang/issues/24633" in words


def test_inheritance_is_one_level_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "GPUBOX_ROOT", str(tmp_path))
    paths.profiles().mkdir()
    for name, above in (("a", ""), ("b", "extends: a\n"), ("c", "extends: b\n")):
        (paths.profiles() / f"{name}.yaml").write_text(
            f"{above}summary: s\nstack: s\npurpose: latency\nflags: {{tp: 1}}\n"
        )
    assert profile.load("b").flags == {"tp": 1}
    with pytest.raises(GpuboxError, match="let c extend a"):
        profile.load("c")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("extends: a\nsummary: s\nreasons:\n", "reasons: input should be a valid list, found None"),
        ("extends: a\nsummary: s\nreasons: abc\n", "reasons: input should be a valid list, found 'abc'"),
        ("extends: a\nsummary: s\nflags: [x]\n", "flags: input should be a valid dictionary"),
        ("extends: broken\n", "broken.yaml: 1 setting(s) cannot be used\n  purpose: "),
        ("extends: [a]\n", "no profile named"),
        ("name: other\nextends: a\n", "name: unknown key"),
    ],
)
def test_a_profile_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str) -> None:
    monkeypatch.setitem(os.environ, "GPUBOX_ROOT", str(tmp_path))
    paths.profiles().mkdir()
    base = "summary: s\nstack: s\npurpose: latency\nflags: {tp: 1}\n"
    for name, content in (("a", base), ("broken", base.replace("latency", "fast")), ("x", text)):
        (paths.profiles() / f"{name}.yaml").write_text(content)
    with pytest.raises(GpuboxError) as error:
        profile.load("x")
    assert told in error.value.message


@pytest.mark.parametrize(
    ("flags", "port", "model"),
    [
        ({}, 30000, ""),
        ({"port": None, "model-path": None, "model": "/m"}, 30000, "/m"),
        ({"port": "8000", "model-path": "/n"}, 8000, "/n"),
    ],
)
def test_port_and_model_when_they_are_left_out(flags: dict[str, FlagValue], port: int, model: str) -> None:
    wish = profile.load("tiny-cpu").model_copy(update={"flags": flags})
    assert (wish.port, wish.model_path) == (port, model)


@pytest.mark.parametrize("port", ["abc", 0.5, 99999, -1, True, "\u00b2"])
def test_no_port(port: FlagValue) -> None:
    with pytest.raises(GpuboxError, match="1 to 65535"):
        _ = profile.load("tiny-cpu").model_copy(update={"flags": {"port": port}}).port
