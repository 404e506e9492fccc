"""`check` as a whole: overrides, what cannot be judged, exit codes, and ten mistakes in one run in time."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from gpubox import rules
from gpubox.cli.check import command as cli
from gpubox.hosts import Box
from gpubox.rules.facts import BoxFacts
from gpubox.rules.finding import Finding, Severity
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings, Override
from gpubox.support import paths

REASON = "kept for the comparison"


def box(name: str, *overrides: str) -> Box:
    wish = profile.load(name)
    broken = [Override(rule=rule, reason=REASON) for rule in overrides]
    return Box("gpu01", BoxSettings(profile=name, overrides=broken), wish, stack.load(wish.stack))


def severities(found: list[Finding]) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in found}


def test_an_overridden_finding_is_milder_and_still_shown_with_its_reason() -> None:
    found = rules.check(box("recorded/glm-5-lxc", "history-profile", "running-request-cap"))
    (history,) = [finding for finding in found if finding.rule == "history-profile"]
    assert (history.severity, history.overridden) == ("warning", REASON)
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123 - rich closes nothing
    rules.report(found, console)
    assert REASON in console.export_text()


def test_an_override_of_nothing_is_told() -> None:
    assert severities(rules.check(box("tiny-cpu", "no-such-rule", "memory-fit", "unknown-card"))) == {
        "override-unknown": "error",
        "override-needless": "info",
        "api-open": "info",
    }


def test_what_cannot_be_judged_is_one_finding_a_cause_and_exit_code_2() -> None:
    wish = profile.load("qwen3-8b-24gb").model_copy(update={"cards": None})
    unknown = Box("gpu01", BoxSettings(profile="x"), wish, stack.load(wish.stack))
    found = rules.check(unknown)
    assert severities(found) == {"unknown-card": "unknown"}
    assert "memory-fit" in found[0].needed
    assert rules.exit_code(found) == 2


def test_facts_are_asked_for_only_where_there_are_some() -> None:
    assert "unknown-facts" not in severities(rules.check(box("glm-5-nvfp4")))
    live = rules.check(box("glm-5-nvfp4"), BoxFacts(virtualisation="lxc", p2p=True, driver="590.48.01"))
    (lacking,) = [finding for finding in live if finding.severity == "unknown"]
    assert "licence of the kernel module" in lacking.found
    assert "driver-version" not in lacking.needed


@pytest.mark.parametrize(
    ("kinds", "code"), [([], 0), (["warning", "info"], 0), (["unknown", "info"], 2), (["unknown", "error"], 1)]
)
def test_exit_codes(kinds: list[Severity], code: int) -> None:
    assert rules.exit_code([Finding("r", kind, "h", "f", "n", "t", ()) for kind in kinds]) == code


WRONG = """
summary: wrong
stack: sglang-0.5.23-cu130
purpose: throughput
model: {catalog: glm-5-nvfp4}
cards: {model: rtx-pro-6000, count: 8}
flags:
  model-path: /root/models/GLM-5-NVFP4
  tp-size: 6
  nsa-decode-backend: trtllm
  moe-runner-backend: flashinfer_trtllm
  kv-cache-dtype: bf16
  max-running-requests: 64
  host: 0.0.0.0
  api-key: abcdef
environment: {NCCL_GRAPH_FILE: ""}
"""
INVENTORY = """
gpu_boxes = [
    ("a", {"profile": "wrong", "overrides": [{"rule": "memory-fitt", "reason": "it fits, surely"}]}),
    ("b", {"profile": "tiny-cpuu"}),
    ("c", {"profile": "tiny-cpu", "vram": 96}),
    ("d", {"profile": "tiny-cpu", "cuda": {"toolkits": ["12.8"], "default": "12.8"}}),
]
"""
MISTAKES = {
    ("a", "flag-unknown"),
    ("a", "dsa-bf16-kv-sm120"),
    ("a", "environment-empty"),
    ("a", "moe-trtllm"),
    ("a", "override-unknown"),
    ("a", "running-request-cap"),
    ("a", "secret-in-profile"),
    ("a", "tensor-parallel-cards"),
    ("a", "tensor-parallel-heads"),
    ("d", "toolkit-installed"),
}


def test_more_than_ten_mistakes_are_all_told_in_one_run_below_1500_ms(tmp_path: Path) -> None:
    for folder in ("profiles", "stacks"):
        shutil.copytree(paths.root() / folder, tmp_path / folder)
    (tmp_path / "profiles" / "wrong.yaml").write_text(WRONG)
    inventory = tmp_path / "inventory.py"
    inventory.write_text(INVENTORY)
    program = [str(Path(sys.executable).with_name("gpubox")), "check", "--json", "--inventory", str(inventory)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(program, capture_output=True, text=True, env={**os.environ, "GPUBOX_ROOT": str(tmp_path)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert {(one["host"], one["rule"]) for one in found} >= MISTAKES
    problems = {one["host"]: one["found"] for one in found if one["rule"] == "inventory"}
    assert "tiny-cpuu" in problems["b"]
    assert "vram: unknown key" in problems["c"]
    assert "abcdef" not in done.stdout
    # CPU seconds: on an idle machine the wall clock says the same, on a busy one it says how busy that is.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--host", "gpu01"], 0, "1 box, 1 finding, 0 errors"),
        (["--host", "gpu99"], 1, "no GPU box 'gpu99'"),
        (["--inventory", "/no/such.py"], 1, "no inventory"),
    ],
)
def test_the_command(arguments: list[str], code: int, told: str) -> None:
    done = CliRunner().invoke(cli, arguments)
    assert (done.exit_code, told in done.output) == (code, True), done.output
