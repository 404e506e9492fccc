"""Onboard a box of the practice machine of its own, as people do from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpubox.lab import lifecycle, network, paths, record
from gpubox.support import paths as checkout

NAME = "gpu02"
ADDRESS = str(network.addresses()[NAME])


def a_box() -> None:
    """Have the box, bare; the practice machine gets a second one where it has only one."""
    lab = record.read()
    lifecycle.up(max(2, len(lab.names) if lab else 0))
    lifecycle.give_hardware(NAME, record.wish(None, None).hardware)
    lifecycle.reset(NAME)


def onboard(folder: Path, *more: str, via: bool = True) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of `gpubox onboard`; inventory and secrets go into the folder."""
    apt = network.addresses()[network.HYPERVISOR]
    words = [
        "onboard",
        ADDRESS,
        *(["--via", str(apt)] if via else []),
        "--name",
        NAME,
        "--json",
        "--inventory",
        str(folder / "box.py"),
    ]
    words += ["--key", str(paths.ssh() / "id_ed25519"), "--known-hosts", str(paths.ssh() / "known_hosts")]
    words += ["--cuda-source", f"http://{apt}:8080/cuda/debian12/x86_64/"]
    words += ["--cuda-keyring", str(paths.apt() / "cuda/debian12/x86_64/cuda-keyring_1.1-1_all.deb")]
    return gpubox(folder, *words, *more)


def gpubox(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a command; of one that ended with an error, its words as `error`."""
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
    program = str(Path(sys.executable).parent / "gpubox")
    done = subprocess.run([program, *words], capture_output=True, text=True, cwd=checkout.root(), env=environment)
    said = json.loads(done.stdout) if done.stdout.lstrip().startswith(("{", "[")) else {}
    return done.returncode, {"error": done.stderr, **(said if isinstance(said, dict) else {"list": said})}
