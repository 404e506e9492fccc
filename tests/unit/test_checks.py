"""What is looked at before a switch, as far as it is judged without a box."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gpubox.remote import checks, checks_child, effective
from gpubox.remote.checks import memory_findings, shard_fault
from gpubox.server import systemd
from gpubox.support import payload
from tests.unit import sent


def test_the_environment_is_read_as_systemd_reads_it() -> None:
    variables = {"A": 'say "hi" to \\ and $HOME `x`', "B": "two\nlines", "PATH": "/a:/b"}
    assert effective.environment("# Written by gpubox\n" + systemd.environment_file(variables)) == variables


def shard(path: Path, cut: int = 0) -> Path:
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "U8", "shape": [100], "data_offsets": [0, 100]}}
    ).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(100)
    path.write_bytes(content[: len(content) - cut])
    return path


@pytest.mark.parametrize(("cut", "told"), [(0, None), (1, "its header says"), (150, "is cut")])
def test_shards(tmp_path: Path, cut: int, told: str | None) -> None:
    fault = shard_fault(shard(tmp_path / "model.safetensors", cut))
    assert fault is None if told is None else told in str(fault)


def card(index: int, free: int, own: int = 0, foreign: int = 0) -> dict[str, int]:
    return {"index": index, "total": 1000, "free": free, "own": own, "foreign": foreign}


@pytest.mark.parametrize(
    ("cards", "wanted", "own", "told"),
    [
        ([card(0, 990)], [0], False, None),
        ([card(0, 90, own=900)], [0], True, None),
        ([card(0, 90)], [0], True, None),  # in a container nvidia-smi sees no processes: the unit's own
        ([card(0, 90)], [0], False, "card 0 can give 90 MiB of 1000"),
        ([card(0, 500, own=100)], [0], True, "card 0 can give 600 MiB of 1000"),
        ([card(0, 980, foreign=10)], [0], False, "holds 10 MiB of card 0"),
        ([card(0, 990), card(1, 10)], [0], False, None),
        ([card(0, 990)], [0, 1], False, "card 1 is not on this box"),
    ],
)
def test_memory_of_cards(cards: list[dict[str, int]], wanted: list[int], own: bool, told: str | None) -> None:
    found = memory_findings(cards, wanted, 0.9, own)
    assert [told in f.found for f in found if told] == ([True] if told else [])
    assert bool(found) is (told is not None)


def test_a_renamed_flag_is_named() -> None:
    known = ["--dsa-decode-backend", "--tp-size", "--port"]
    hints = checks_child.near(["--nsa-decode-backend=x", "--quite-other"], known)
    assert hints == ["--nsa-decode-backend is perhaps --dsa-decode-backend here"]


def test_as_the_box_runs_it(remote_python: str) -> None:
    done = sent.run("checks", given={"release": "/nowhere"}, python=remote_python)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be looked at" in done.stderr


def test_a_python_that_cannot_import_sglang_says_so(remote_python: str) -> None:
    """This one has no SGLang."""
    asked: dict[str, Any] = {"argv": [], "device": "cpu", "model": "/nowhere", "revision": None}
    done = sent.run("checks_child", given=asked, python=remote_python, flags=())
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["check"] == "imports"
    assert "ModuleNotFoundError" in finding["found"]


TOOLS = ("gcc", "g++", "ninja")
REFUSES = "#!/bin/sh\necho 'line.c:1:10: fatal error: Python.h: No such file or directory' >&2\nexit 1\n"


@pytest.mark.parametrize(
    ("tools", "device", "said"),
    [
        (dict.fromkeys(TOOLS, "#!/bin/sh\n"), "cpu", []),
        ({"gcc": "#!/bin/sh\n", "g++": "#!/bin/sh\n"}, "cpu", ["ninja is not in the unit's PATH"]),
        ({"ninja": "#!/bin/sh\n"}, "cpu", ["gcc is not in the unit's PATH", "g++ is not in the unit's PATH"]),
        ({**dict.fromkeys(TOOLS, "#!/bin/sh\n"), "gcc": REFUSES}, "cpu", ["Python.h: No such file"]),
        (dict.fromkeys(TOOLS, "#!/bin/sh\n"), "cuda", ["nvcc is not in the unit's PATH"]),
    ],
)
@pytest.mark.pain("P100")
def test_what_compiles_kernels_is_tried_in_the_units_environment(
    tools: dict[str, str], device: str, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    findings: list[dict[str, str]] = []
    checks_child.compilers(findings, device)
    assert [one["check"] for one in findings] == ["compilers"] * len(said)
    for one, words in zip(findings, said, strict=True):
        assert words in one["found"]
        assert one["todo"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["0, GPU-a, 97887, 97251", "1, GPU-b, 97887, 97251"], []),
        (["0, GPU-a, 97887, 97251", "1, [GPU is lost], [GPU is lost], [GPU is lost]"], ["card 1 is broken"]),
        (
            ["0, GPU-a, 97887, 97251", "[Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]"],
            ["card 1 is broken: nvidia-smi says [Unknown Error]"],
        ),
        (["0, GPU-a, [N/A], [N/A]", "1, GPU-b, [N/A], [N/A]"], []),
        (
            ["Unable to determine the device handle for GPU0000:07:00.0: Unknown Error", "0, GPU-a, 97887, 97251"],
            ["card 1 is not on this box"],
        ),
    ],
)
@pytest.mark.pain("P92", "P101")
def test_broken_and_unified_cards_before_a_switch(
    rows: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def output(words: list[str], limit_s: float) -> str:
        return "\n".join(rows) if words[1].startswith("--query-gpu") else ""

    monkeypatch.setattr("gpubox.remote.checks.command.output", output)
    monkeypatch.setattr("gpubox.remote.checks._pids", lambda arguments: set())
    asked = checks.Arguments("/r", "sglang.service", 30000, "cuda", "13.1", "/m")
    found = checks._cards(asked, {"arguments": {"tp_size": 2}}, {})
    assert len(found) == len(said)
    for one, words in zip(found, said, strict=True):
        assert words in one.found


def test_a_release_is_looked_at_with_its_own_python(tmp_path: Path, remote_python: str) -> None:
    """Which has no SGLang here; the box has no toolkit and its model no whole shard."""
    (tmp_path / "argv.json").write_text(json.dumps([remote_python, "-m", "sglang.launch_server", "--port", "1"]))
    (tmp_path / "environment").write_text('PATH="/nowhere"\n')
    (tmp_path / "api-key").write_text("sekret\n")
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 9)
    given = checks.Arguments(str(tmp_path), "u.service", 1, "cpu", "13.1", str(tmp_path), shm_bytes=1, disk_bytes=1)
    given = replace(given, child=payload.after_python("checks_child"))
    changed = {"checks": ('cwd="/root"', f"cwd={str(tmp_path)!r}")}
    done = sent.run("checks", given=asdict(given), python=remote_python, changed=changed)
    assert done.returncode == checks.FINDINGS, done.stderr
    found = {finding["check"]: finding["found"] for finding in json.loads(done.stdout)["findings"]}
    assert "ModuleNotFoundError" in found["imports"]
    assert found["nvcc"] == "the service's PATH has no nvcc"
    assert "is cut" in found["weights"]
