"""What only the release's own Python can say: imports, the command line, the model's configuration.

Run by gpubox/remote/checks.py with the venv's python and the service's environment; a JSON object on stdin (argv,
device, model, revision), one JSON line at the end of stdout: `findings`, and `arguments` as SGLang understood them.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMPILE_S = 120
KEYS = ("tp_size", "pp_size", "nnodes", "base_gpu_id", "mem_fraction_static", "trust_remote_code")


def main(words: list[str]) -> int:
    """Look, and print what was found. It takes no words."""
    asked = json.loads(sys.stdin.read())
    findings: list[dict[str, str]] = []
    arguments: dict[str, Any] = {}
    with contextlib.redirect_stdout(sys.stderr):
        compilers(findings, asked["device"])
        imported = _tried(findings, "imports", "look at the stack's packages", lambda: _import(asked["device"]))
        if imported and (known := _parse(findings, asked["argv"])) is not None:
            arguments = {key: getattr(known, key, None) for key in KEYS}
            _tried(
                findings, "model", "look at model-path, and at the stack's transformers", lambda: _config(asked, known)
            )
            if asked["device"] == "cuda":
                _tried(findings, "cards", "look at the driver and the container's devices", lambda: _cards(arguments))
    print(json.dumps({"findings": findings, "arguments": arguments}))
    return 0


def near(words: list[str], known: list[str]) -> list[str]:
    """For each flag that is not known, the known one that looks most like it."""
    hints = []
    for word in words:
        close = difflib.get_close_matches(word.partition("=")[0], known, 1, 0.6)
        hints += [f"{word.partition('=')[0]} is perhaps {close[0]} here" for _ in close]
    return hints


def compilers(findings: list[dict[str, str]], device: str) -> None:
    """Compile one line with each compiler that kernels are compiled with at run time, in the unit's environment.

    A start without them fails after minutes, when the first kernel is needed. Evidence: flashinfer-ai/flashinfer#3386,
    sgl-project/sglang#18644, #5002, anthony-chaudhary/fak#923 (three times 900 s).
    """
    headers = f"-I{sysconfig.get_path('include')}"
    c = os.environ.get("CC") or _first("gcc", "clang", "cc")
    cpp = os.environ.get("CXX") or _first("g++", "clang++", "c++")
    include_python, include_vector = "#include <Python.h>\n", "#include <vector>\n"
    lines = [
        (
            "a C compiler and Python.h",
            [c, "-x", "c", headers],
            include_python,
            "apt install build-essential python3-dev",
        ),
        ("a C++ compiler", [cpp, "-x", "c++"], include_vector, "apt install build-essential"),
    ]
    if device == "cuda":
        nvcc = f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin/nvcc"
        lines.append(("nvcc", [nvcc], "__global__ void k() {}\n", "cuda.toolkits of the box's data"))
    for what, words, text, cure in lines:
        said = _compiled(words, text)
        if said is not None:
            todo = f"{cure}, or a run of the deploy"
            findings.append({"check": "compilers", "found": f"{what}: {said}", "todo": todo})
    if shutil.which("ninja") is None:
        found = f"ninja is not in the unit's PATH ({os.environ.get('PATH', '')})"
        todo = "apt install ninja-build, or a run of the deploy"
        findings.append({"check": "compilers", "found": found, "todo": todo})


def _first(*names: str) -> str:
    return next((found for found in map(shutil.which, names) if found), names[0])


def _compiled(words: list[str], text: str) -> str | None:
    """Why it did not compile, in the compiler's own words; None: it did."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [*words, "-c", "-", "-o", f"{folder}/line.o"]
        if words[0].endswith("nvcc"):  # it reads no standard input
            (Path(folder) / "line.cu").write_text(text)
            argv = [words[0], "-c", f"{folder}/line.cu", "-o", f"{folder}/line.o"]
        try:
            done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=COMPILE_S)
        except FileNotFoundError:
            return f"{words[0]} is not in the unit's PATH"
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
    return " ".join(lines[:1]).strip()[:300] or f"exit code {done.returncode}"


def _tried(findings: list[dict[str, str]], check: str, todo: str, act: Callable[[], None]) -> bool:
    try:
        act()
    except (Exception, SystemExit) as error:
        lines = str(error).strip().splitlines() or [""]
        findings.append({"check": check, "found": f"{type(error).__name__}: {' '.join(lines)[:600]}", "todo": todo})
        return False
    return True


def _import(device: str) -> None:
    """The server's own module last: it needs most of the packages."""
    names = ["torch", *(["sgl_kernel"] if device == "cuda" else []), "sglang.srt.entrypoints.http_server"]
    for name in names:
        importlib.import_module(name)


def _parse(findings: list[dict[str, str]], argv: list[str]) -> Any:
    module = importlib.import_module("sglang.srt.server_args")
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return module.prepare_server_args(argv)
    except SystemExit:
        lines = [line for line in said.getvalue().splitlines() if "error:" in line]
        text = lines[-1].partition("error:")[2].strip() if lines else "SGLang's parser refuses the command line"
        words = [word for word in text.split() if word.startswith("--")] if "unrecognized" in text else []
        todo = "; ".join(near(words, re.findall(r"--[a-z0-9][a-z0-9-]*", _help(module)))) or "see the profile's flags"
        findings.append({"check": "command line", "found": text[:900], "todo": todo})
    except Exception as error:
        found = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
        findings.append({"check": "command line", "found": found, "todo": "see the profile's flags"})
    return None


def _help(module: Any) -> str:
    parser = importlib.import_module("argparse").ArgumentParser()
    module.ServerArgs.add_cli_args(parser)
    return str(parser.format_usage())


def _config(asked: dict[str, Any], known: Any) -> None:
    model = asked["model"]
    if model.startswith(("/", ".", "~")) and not Path(model).expanduser().exists():
        raise FileNotFoundError(f"{model} is not on this box")
    if model.endswith(".gguf"):
        return
    more = {} if model.startswith(("/", ".", "~")) else {"revision": asked["revision"]}
    trust = bool(getattr(known, "trust_remote_code", False))
    importlib.import_module("transformers").AutoConfig.from_pretrained(model, trust_remote_code=trust, **more)


def _cards(arguments: dict[str, Any]) -> None:
    sizes = [int(arguments.get(key) or 1) for key in ("tp_size", "pp_size", "nnodes")]
    needed = sizes[0] * sizes[1] // sizes[2]
    seen = importlib.import_module("torch").cuda.device_count()
    if seen < needed:
        raise RuntimeError(f"torch sees {seen} cards, the command line takes {needed}")
