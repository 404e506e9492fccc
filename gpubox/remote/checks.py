"""Look at a release on the box before it is switched to, with the old one still serving.

Run as root, one JSON object on stdin (`Arguments`). The parts that need SGLang run in one child with the release's own
python and environment (gpubox.remote.checks_child). Prints one JSON object: `findings` (each with `check`, `found`,
`todo`) and `took_s`. Nothing is changed, no card is used.
Exit codes: 0 nothing found, 1 findings, 2 could not tell (why: on stderr).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubox.remote import command, endpoint, proc
from gpubox.remote.arguments import parse
from gpubox.remote.command import CommandError
from gpubox.remote.effective import environment

CLEAN, FINDINGS, CANNOT_TELL = 0, 1, 2
CHILD_S = 600
SHM = "/dev/shm"  # noqa: S108 - no file of ours: the one mount of that name
GIB = 2**30
NO_MEMORY_OF_ITS_OWN = re.compile(r"\[?(N/A|Not Available|Not Supported)\]?")
"""What nvidia-smi says for a card that uses the processor's memory: nothing to compare with, and no fault."""


@dataclass(frozen=True)
class Arguments:
    """What to look at."""

    release: str
    """The release's folder."""
    unit: str
    """As `sglang.service`: what is its own is not foreign."""
    port: int
    device: str
    """`cpu` or `cuda`."""
    cuda_home: str
    """Toolkit that nvcc must be of, as `13.1`."""
    model: str
    """Folder, file, or name on the hub."""
    revision: str | None = None
    child: list[str] = field(default_factory=list)
    """The words after the release's python that run gpubox.remote.checks_child."""
    shm_bytes: int = 64 * 2**20
    """Room that shared memory must have, times the cards where there are several: SGLang's ranks and NCCL use it."""
    disk_bytes: int = 2 * GIB
    """Free space for logs and just-in-time kernels."""
    handed_over: tuple[int, ...] = ()
    """Processes of a server whose place the switch takes: as good as the unit's own."""


@dataclass(frozen=True)
class Finding:
    """Why not to switch."""

    check: str
    found: str
    todo: str = ""


def main(words: list[str]) -> int:
    """Read the arguments, look, print the findings; returns the exit code. It takes no words."""
    began = time.monotonic()
    try:
        arguments = parse(Arguments, sys.stdin.read())
        folder = Path(arguments.release)
        argv = json.loads((folder / "argv.json").read_text())
        argv = [word.replace("@RELEASE@", folder.name) for word in argv]
        variables = environment((folder / "environment").read_text())
        said = _child(arguments, argv, variables)
        findings = [Finding(**one) for one in said["findings"]]
        findings += [*_port(arguments), *_nvcc(arguments, variables), *_room(arguments, said), *_shards(arguments)]
        findings += _cards(arguments, said, variables) if arguments.device == "cuda" else []
    except (CommandError, OSError, ValueError, TypeError, LookupError, subprocess.TimeoutExpired) as error:
        print(f"the release cannot be looked at: {error}", file=sys.stderr)
        return CANNOT_TELL
    found = [{"check": f.check, "found": _masked(folder, f.found), "todo": f.todo} for f in findings]
    print(json.dumps({"findings": found, "took_s": round(time.monotonic() - began, 1)}))
    return FINDINGS if findings else CLEAN


def shard_fault(path: Path) -> str | None:
    """Why a safetensors file is not whole, by its own header; None: it is."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            return f"{path.name} is cut: {size} bytes"
        header = json.loads(file.read(length))
    end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    return None if size == 8 + length + end else f"{path.name} has {size} bytes, its header says {8 + length + end}"


def memory_findings(cards: list[dict[str, int]], wanted: list[int], fraction: float, own: bool) -> list[Finding]:
    """What keeps the server from its memory.

    + cards: index, total, free and own (all MiB): own is what processes of the unit hold, foreign what others do
    + wanted: indices of the cards that the server will use
    + fraction: of a card's memory that it takes
    + own: whether the unit runs; memory that no process is seen for is then taken for its own (in a container,
      nvidia-smi sees no processes)
    """
    found = []
    for card in (card for card in cards if card["index"] in wanted):
        if card["foreign"]:
            text = f"a process that is not the server's holds {card['foreign']} MiB of card {card['index']}"
            found.append(Finding("cards", text, "end it (nvidia-smi shows it), or choose other cards"))
            continue
        unseen = card["total"] - card["free"] - card["own"]
        available = card["free"] + card["own"] + (unseen if own and not card["own"] else 0)
        if available < fraction * card["total"]:
            text = f"card {card['index']} can give {available} MiB of {card['total']}, the server takes {fraction:.0%}"
            found.append(Finding("cards", text, "find who holds it: another container, or an orphan on the hypervisor"))
    missing = sorted(set(wanted) - {card["index"] for card in cards})
    return found + [Finding("cards", f"card {index} is not on this box") for index in missing]


def _child(arguments: Arguments, argv: list[str], variables: dict[str, str]) -> dict[str, Any]:
    words = argv[argv.index("sglang.launch_server") + 1 :]
    asked = {"argv": words, "device": arguments.device, "model": arguments.model, "revision": arguments.revision}
    done = subprocess.run(
        [argv[0], *arguments.child],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=CHILD_S,
        cwd="/root",
        env={"HOME": "/root", "LANG": "C.UTF-8", **variables},
    )
    last = done.stdout.strip().splitlines()[-1:] or [""]
    if last[0].startswith("{"):
        return dict(json.loads(last[0]))
    tail = " | ".join(done.stderr.strip().splitlines()[-3:])
    text = f"the venv's python ended with {done.returncode} while importing SGLang: {tail[-600:]}"
    return {"findings": [{"check": "imports", "found": text, "todo": "look at the stack's packages"}], "arguments": {}}


def _port(arguments: Arguments) -> list[Finding]:
    foreign = [process for process in proc.listeners(arguments.port) if not _is_own(process, arguments)]
    if not foreign:
        return []
    text = f"{proc.named(foreign[0])} listens on {arguments.port}"
    return [Finding("port", text, "end it, or choose another port")]


def _is_own(process: Path, arguments: Arguments) -> bool:
    return int(process.name) in arguments.handed_over or proc.is_in(process, arguments.unit)


def _nvcc(arguments: Arguments, variables: dict[str, str]) -> list[Finding]:
    program = shutil.which("nvcc", path=variables.get("PATH"))
    if program is None:
        return [Finding("nvcc", "the service's PATH has no nvcc", f"cuda.toolkits must have {arguments.cuda_home}")]
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, env=variables)
    if f"release {arguments.cuda_home}," in done.stdout:
        return []
    said = (done.stdout or done.stderr).strip().splitlines()[-2:]
    return [
        Finding("nvcc", f"{program} is not of CUDA {arguments.cuda_home}: {' '.join(said)}", "run the deploy whole")
    ]


def _room(arguments: Arguments, said: dict[str, Any]) -> list[Finding]:
    cards = _count(said)
    needed = arguments.shm_bytes * (cards if cards > 1 else 1)
    found = []
    if not os.access(SHM, os.W_OK) or shutil.disk_usage(SHM).free < needed:
        text = f"{SHM} has no room for {needed >> 20} MiB"
        found.append(Finding("shm", text, "mount it larger: the hypervisor's configuration of the container"))
    for path in ("/", "/root"):
        if (free := shutil.disk_usage(path).free) < arguments.disk_bytes:
            found.append(
                Finding("disk", f"{path} has {free / GIB:.1f} GiB free", f"{arguments.disk_bytes / GIB:.0f} GiB")
            )
            break
    return found


def _shards(arguments: Arguments) -> list[Finding]:
    folder = Path(arguments.model)
    files = sorted(folder.glob("*.safetensors")) if folder.is_absolute() and folder.is_dir() else []
    faults = [fault for file in files if (fault := shard_fault(file)) is not None]
    return [Finding("weights", f"{folder}: {', '.join(faults[:5])}", "fetch or copy them again")] if faults else []


def _count(said: dict[str, Any]) -> int:
    sizes = {name: int(said["arguments"].get(name) or 1) for name in ("tp_size", "pp_size", "nnodes")}
    return max(1, sizes["tp_size"] * sizes["pp_size"] // sizes["nnodes"])


def _cards(arguments: Arguments, said: dict[str, Any], variables: dict[str, str]) -> list[Finding]:
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not re.fullmatch(r"\d+(,\d+)*", visible):
        return []  # named by UUID or MIG: which index they have is not said here
    cards, silent = _seen(arguments)
    listed = sorted([*(card["index"] for card in cards), *silent])
    order = [int(word) for word in visible.split(",")] if visible else listed
    first = int(said["arguments"].get("base_gpu_id") or 0)
    wanted = [order[n] if n < len(order) else n for n in range(first, first + _count(said))]
    fraction = float(said["arguments"].get("mem_fraction_static") or 0.8)
    running = _pids(arguments) != set()
    findings = memory_findings(cards, [index for index in wanted if index not in silent], fraction, running)
    for index, word in silent.items():
        if index in wanted and not NO_MEMORY_OF_ITS_OWN.fullmatch(word):
            text = f"card {index} is broken: nvidia-smi says {word}"
            findings.append(Finding("cards", text, "gpubox doctor says what it needs; or choose other cards"))
    return findings


def _seen(arguments: Arguments) -> tuple[list[dict[str, int]], dict[int, str]]:
    """The cards that tell their memory; of the others, by number, what nvidia-smi says instead."""
    own_pids = _pids(arguments)
    held: dict[str, dict[str, int]] = {}
    for uuid, pid, used in _smi("--query-compute-apps=gpu_uuid,pid,used_memory", 3):
        whose = "own" if pid in own_pids else "foreign"
        mib = int(used) if used.isdigit() else 1
        held.setdefault(uuid, {}).setdefault(whose, 0)
        held[uuid][whose] += mib
    found: list[dict[str, int]] = []
    silent: dict[int, str] = {}
    for place, (number, uuid, total, free) in enumerate(_smi("--query-gpu=index,uuid,memory.total,memory.free", 4)):
        index = int(number) if number.isdigit() else place
        if not (total.isdigit() and free.isdigit()):
            silent[index] = free if total.isdigit() else total
            continue
        card = {"index": index, "total": int(total), "free": int(free), "own": 0, "foreign": 0}
        found.append({**card, **held.get(uuid, {})})
    return found, silent


def _pids(arguments: Arguments) -> set[str]:
    return {process.name for process in proc.processes() if _is_own(process, arguments)}


def _smi(query: str, count: int) -> list[list[str]]:
    """The rows of `count` values; nvidia-smi puts messages about single cards between them."""
    said = command.output(["nvidia-smi", query, "--format=csv,noheader,nounits"], 120)
    rows = [[word.strip() for word in line.split(",")] for line in said.splitlines() if line.strip()]
    return [row for row in rows if len(row) == count]


def _masked(folder: Path, text: str) -> str:
    file = folder / "api-key"
    key = endpoint.read_key(str(file)) if file.exists() else None
    return text.replace(key, "(the API key)") if key else text
