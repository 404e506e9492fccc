"""What was seen to run is no error of a rule; what was changed since, or is put elsewhere, is judged as ever."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from gpubox import rules
from gpubox.catalog import release
from gpubox.hosts import Box
from gpubox.onboard import adoption
from gpubox.onboard.state import Server
from gpubox.rules.finding import Finding
from gpubox.settings import stack
from gpubox.settings.host import BoxSettings
from gpubox.settings.profile import Profile

FLAGS = "--model lukealonso/GLM-5-NVFP4 --tp 8 --nsa-decode-backend trtllm --enable-flashinfer-allreduce-fusion"
SERVER = Server(
    pid=1,
    argv=["python3", "-m", "sglang.launch_server", *FLAGS.split()],
    environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    secret_flags=[],
    secret_variables=[],
    unit="",
    folder="/root",
    venv="",
    sglang="0.5.9",
    torch="2.9.1",
)
CARDS = ["NVIDIA RTX PRO 6000 Blackwell Server Edition"] * 8


def judged(server: Server, to: str | None = None, changed: dict[str, Any] | None = None) -> list[Finding]:
    text = adoption.profile_text(adoption.adopt(server, to), "s", "throughput", "2026-11-29", CARDS)
    values = {"name": "adopted", **yaml.safe_load(text)}
    values["flags"] = {**values["flags"], **(changed or {})}
    profile = Profile.model_validate(values)
    box = Box("box", BoxSettings(profile="adopted"), profile, stack.load(profile.stack))
    return rules.check(box)


def errors(found: list[Finding]) -> set[str]:
    return {one.rule for one in found if one.severity == "error"}


def test_what_ran_is_told_as_a_warning_with_the_reason() -> None:
    found = judged(SERVER)
    assert errors(found) == set()
    told = next(one for one in found if one.rule == "all-reduce-fusion")
    assert (told.severity, told.overridden) == (
        "warning",
        "a server ran with exactly these settings, on this release, when it was adopted",
    )


def test_what_a_person_changed_since_was_not_seen() -> None:
    changed = judged(SERVER, changed={"mem-fraction-static": 0.99})
    assert {"all-reduce-fusion", "glm-dsa-sm120-release"} <= errors(changed)


def test_another_release_was_not_seen() -> None:
    assert "flag-unknown" in errors(judged(SERVER, "sglang-0.5.23-cu130"))


def test_sources_of_ones_own_say_nothing_about_the_release() -> None:
    assert "glm-dsa-sm120-release" in errors(judged(replace(SERVER, source="/home/jo/sglang")))


def test_a_model_on_an_old_release_hears_nothing_of_another_one() -> None:
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "acme/Finch-8B"]
    server = replace(SERVER, argv=argv, environment={})
    for found in (judged(server), judged(server, changed={"context-length": 4096})):
        assert "GLM" not in " ".join(one.found for one in found if one.rule != "unknown-model")


@pytest.mark.parametrize("version", ["0.5.9", "0.5.13", "0.5.23"])
def test_advice_names_only_flags_that_the_release_has(version: str) -> None:
    known = release.load(version)
    there = {name for name in known.spellings if (flag := known.find(name)) and not flag.removed}
    every = {name for other in release.versions() for name in release.load(other).spellings}
    base = stack.load("sglang-0.5.23-cu130").model_copy(update={"sglang": version})
    profile = Profile.model_validate(
        {
            "name": "p",
            "summary": "s",
            "stack": base.name,
            "purpose": "throughput",
            "flags": dict.fromkeys(sorted(every - there), True),
        }
    )
    box = Box("box", BoxSettings(profile="p"), profile, base)
    found = [one for one in rules.check(box) if one.rule in {"flag-unknown", "flag-deprecated"}]
    assert len(found) > 20
    for one in found:
        words = one.todo.replace(",", " ").replace("?", " ").split()
        named = {word.partition("=")[0].removeprefix("--") for word in words if word.startswith("--")}
        assert {name for name in named if "{" not in name} <= there, one


def test_a_flag_of_a_newer_release_is_not_advised_on_an_older_one() -> None:
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "/m", "--disable-piecewise-cuda-graph"]
    moved = judged(replace(SERVER, argv=argv, sglang="0.5.13"), "sglang-0.5.9-cu128")
    told = next(one for one in moved if one.rule == "flag-unknown")
    assert "cuda-graph-backend" not in told.todo
