"""Random settings: the check never ends in a traceback, and what is rendered is a unit that systemd takes.

Few and large examples: each asks the real systemd-analyze once about a folder of units.
"""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gpubox import inventory, rules
from gpubox.catalog import release
from gpubox.hosts import Box
from gpubox.rules import registry
from gpubox.rules.facts import BoxFacts
from gpubox.server import command, jit, systemd
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings, Cuda, Override
from gpubox.settings.profile import Profile
from gpubox.support.errors import GpuboxError
from gpubox.support.templates import render
from tests.unit.test_systemd import read

JUDGED = [  # the flags that rules do arithmetic with
    *("tp", "tp-size", "pp-size", "dp-size", "ep-size", "nnodes", "moe-dp-size", "ep-num-redundant-experts"),
    *("mem-fraction-static", "max-total-tokens", "context-length", "chunked-prefill-size", "max-running-requests"),
    *("cuda-graph-max-bs-decode", "cuda-graph-bs-decode", "kv-cache-dtype", "host", "port", "model-path", "api-key"),
]
KNOWN = [*release.load("0.5.23").spellings, *release.load("0.5.9").spellings]
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
HOSTILE = st.sampled_from(
    ["", " ", "%h", "$HOME", '"', "'", "\\", ";", "a b", '{"a": [1, "%s"]}', "\n", "\x00", "-1", "é"]
)
SCALAR: SearchStrategy[bool | int | float | str] = (
    st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | TEXT
    | HOSTILE
    | st.sampled_from(["auto", "8", "0.9", "trtllm"])
)
VALUE = SCALAR | st.none() | st.lists(st.integers() | TEXT | st.floats(), max_size=3)
EDGES = st.sampled_from([float("inf"), float("nan"), -1, 0, 1e300, 2**200, "1e400", "²", ["²"], [], 1, 8, 512, "0.5"])
FLAGS = st.dictionaries(st.sampled_from(KNOWN) | TEXT, VALUE, max_size=6)
SIZES = st.dictionaries(st.sampled_from(JUDGED), EDGES, max_size=4)
NAMES = st.sampled_from(["NCCL_P2P_LEVEL", "PYTORCH_ALLOC_CONF", "SGLANG_X", "HF_TOKEN"]) | TEXT
ENVIRONMENT = st.dictionaries(NAMES, TEXT | HOSTILE, max_size=5)
FACTS = st.none() | st.builds(
    BoxFacts,
    driver=st.none() | TEXT,
    module_license=st.none() | TEXT,
    virtualisation=st.sampled_from([None, "bare", "lxc", "vm"]),
    p2p=st.sampled_from([None, True, False]),
    distribution=st.none() | TEXT,
    heads=st.none() | st.integers(1, 300),
)

VERSION = st.sampled_from(["12.8", "13.1"]) | st.from_regex(r"\A[0-9]{1,3}\.[0-9]{1,3}\Z")
BOXES = st.builds(
    BoxSettings,
    profile=TEXT,
    gpus=st.just("all") | st.lists(st.integers() | TEXT, max_size=3),
    cuda=st.builds(Cuda, toolkits=st.lists(VERSION, min_size=1, max_size=3), default=VERSION),
    overrides=st.lists(
        st.builds(Override, rule=st.sampled_from([*registry.rules()]) | TEXT, reason=st.just("a reason of mine"))
    ),
)

WORDS = st.sampled_from([*Profile.model_fields, *BoxSettings.model_fields, "catalog", "kind", "setting"])
TREES = st.recursive(
    SCALAR | st.none() | st.dates() | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | SCALAR | st.none(), inner, max_size=4),
    max_leaves=12,
)
BASE: dict[Any, Any] = {"summary": "s", "stack": "sglang-0.5.23-cpu", "purpose": "latency", "flags": {}}
FILES = (
    st.dictionaries(WORDS | SCALAR, TREES, max_size=4).map(lambda tree: yaml.safe_dump({**BASE, **tree}).encode())
    | TREES.map(lambda tree: yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass"))
    | st.text("ab:-?[]{}&*!|>'\"%@`#,.0123\n\t ~<", max_size=40).map(str.encode)
    | st.binary(max_size=40)
)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    base = profile.load(draw(st.sampled_from(profile.names())))
    flags = {**(base.flags if draw(st.booleans()) else {}), **draw(FLAGS), **draw(SIZES)}
    return base.model_copy(update={"flags": flags, "environment": {**base.environment, **draw(ENVIRONMENT)}})


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(profiles(), BOXES, FACTS)
def test_a_check_never_ends_in_a_traceback(wish: Profile, wishes: BoxSettings, facts: BoxFacts | None) -> None:
    box = Box("box", wishes, wish, stack.load(wish.stack))
    for finding in rules.check(box, facts):
        assert finding.found


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(FILES, TREES | st.lists(st.tuples(TEXT, TREES), max_size=3))
def test_whatever_the_files_hold_is_settings_or_an_error_for_people(file: bytes, boxes: object) -> None:
    with TemporaryDirectory() as folder, patch.dict(os.environ, GPUBOX_ROOT=folder):
        (Path(folder) / "profiles").mkdir()
        (Path(folder) / "profiles" / "x.yaml").write_bytes(file)
        (Path(folder) / "inventory.py").write_text(f"nan = inf = 1.0\nimport datetime\ngpu_boxes = {boxes!r}\n")
        told: list[str] = []
        for read in (lambda: profile.load("x"), lambda: inventory.read(Path(folder) / "inventory.py")):
            try:
                read()
            except GpuboxError as error:
                told.append(error.message)
        assert all(folder in message for message in told)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (Debian package systemd)")
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(st.lists(profiles(), min_size=20, max_size=20))
@pytest.mark.pain("P67")
def test_what_is_rendered_systemd_takes_and_reads_back(wishes: list[Profile]) -> None:
    with TemporaryDirectory() as folder:
        units = [
            unit
            for number, wish in enumerate(wishes)
            if (unit := _unit(wish, Path(folder) / f"gpubox{number}.service"))
        ]
        if units:
            command_line = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, units)]
            done = subprocess.run(command_line, capture_output=True, text=True)
            complaints = [line for line in done.stderr.splitlines() if "gpubox" in line]
            assert (done.returncode, complaints) == (0, []), done.stderr


def _unit(wish: Profile, path: Path) -> Path | None:
    """A unit of the profile; None: refused with an error for people, which is as good."""
    argv = ["/bin/true", *command.argv(wish, "/root/ml-env")[1:]]
    try:
        line = systemd.exec_line(argv)
        text = systemd.environment_file(wish.environment)
    except GpuboxError:
        return None
    assert read(line) == argv
    lines = {"exec_line": line, "jit": jit.environment("venv"), "jit_line": systemd.exec_line(jit.ready("venv"))}
    bound = systemd.process_lines(wish.process)
    path.write_text(
        render("sglang.service.j2", profile=wish, folder=str(path.parent), process=bound, limits={}, **lines)
    )
    path.with_suffix(".env").write_text(text)
    return path
