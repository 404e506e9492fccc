"""Find the server that runs by hand with the very flags that the unit is to have, and end it.

Run as root with `look`, `end` or `again`, one JSON object on stdin: `flags` (the words after the launcher),
`unit` (the service's own name: what it holds is never meant), `venv_link` (the path that points at the current venv).

`look` and `end` print {"pids": [...], "unit": ...}: the server with all its descendants, and the systemd service that
holds it; no pids: there is none. Another server than the one meant, with one flag that differs, is never touched. `end`
stops it as it was started: its service is stopped and disabled, a process of a login gets SIGTERM, and after a minute
SIGKILL. `again`: the unit has never answered, so it gives way to what was ended, started as it was.
Exit codes: 0 done, 1 it did not end, or nothing was ended that could be started again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gpubox.remote import config_file, files, proc
from gpubox.remote.launchers import launch

LAUNCHER = "sglang.launch_server"
OURS = ("api-key", "config", "revision", "admin-api-key", "ssl-keyfile-password", "watermark-key")
"""Flags that gpubox gives in its own way, or has no place for: they may differ."""
END_S = 60.0
POLL_S = 0.01
ENDED = Path("/var/lib/gpubox/ended.json")
"""How the server that was ended was started; gone once a release has answered (gpubox.remote.switch)."""
LOG = Path("/var/lib/gpubox/ended.log")
"""What it says when it was started again."""


def main(words: list[str]) -> int:
    """Look, end, or start again; prints what was found."""
    asked = json.loads(sys.stdin.read())
    if words[0] == "again":
        return again(asked["unit"], asked["venv_link"])
    found = look(asked["flags"], asked["unit"])
    if words[0] == "end":
        remember(found)
        end(found)
        left = _left(found["pids"])
        if left:
            print(f"processes {left} did not end", file=sys.stderr)
            return 1
    print(json.dumps(found))
    return 0


def look(flags: list[str], unit: str) -> dict[str, Any]:
    """The server with these flags outside of the unit."""
    wanted = settings(flags)
    for process in proc.processes():
        words = server_words(process)
        if words is None or settings(words) != wanted or not proc.is_seen_here(process):
            continue
        services = proc.services(process)
        if unit in services:
            continue
        pid = int(process.name)
        pids = [pid, *proc.descendants(pid)]
        return {"pids": pids, "unit": services[-1] if services and _is_all_of(services[-1], pids) else ""}
    return {"pids": [], "unit": ""}


def settings(words: list[str]) -> dict[str, list[str]]:
    """Flag -> its values; what gpubox gives in its own way is left out."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if re.match(r"--[A-Za-z]", word):
            name, equals, value = word[2:].partition("=")
            found[name] = [value] if equals else []
        elif name:
            found[name].append(word)
    return {name: values for name, values in found.items() if not _is_ours(name)}


def server_words(process: Path) -> list[str] | None:
    """The flags of a server with their values, those of its file (`--config`) before its own; None: no SGLang."""
    folder = proc.link(process, "cwd")
    found = launch(proc.words(process), folder, proc.link(process, "exe"))
    if found is None or found.engine != "sglang":
        return None
    if "--config" not in found.words[:-1]:
        return found.words
    try:
        items = config_file.read(Path(folder, found.words[found.words.index("--config") + 1]).read_text())
    except (OSError, ValueError):
        return found.words
    return [*config_file.words(items), *found.words]


def remember(found: dict[str, Any]) -> None:
    """Keep how it was started, for root alone: its environment may hold secrets."""
    if not found["pids"]:
        return
    process = proc.process(found["pids"][0])
    how = {"unit": found["unit"], "argv": proc.words(process)}
    if not found["unit"]:
        owner = process.stat()
        how["environment"] = proc.variables(process)
        how.update(folder=str((process / "cwd").readlink()), user=owner.st_uid, group=owner.st_gid)
    files.write(ENDED, json.dumps(how).encode(), 0o600)


def again(unit: str, venv_link: str) -> int:
    """Start what was ended, in place of the unit; the folder that lay where the link is now lies there again."""
    if not ENDED.exists():
        print("no server was ended that could be started again", file=sys.stderr)
        return 1
    how = json.loads(ENDED.read_text())
    subprocess.run(["systemctl", "disable", "--now", unit], check=True)
    link = Path(venv_link)
    aside = sorted(link.parent.glob(f"{link.name}.old-*"))
    if aside and link.is_symlink():
        link.unlink()
        aside[-1].rename(link)
    if how["unit"]:
        subprocess.run(["systemctl", "enable", "--now", how["unit"]], check=True)
        return 0
    owner = {"user": how["user"], "group": how["group"]} if how["user"] else {}
    LOG.touch(0o600)  # SGLang prints an API key that is on its command line
    with LOG.open("ab") as log:
        subprocess.Popen(
            how["argv"],
            env=how["environment"],
            cwd=how["folder"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            **owner,
        )
    return 0


def end(found: dict[str, Any]) -> None:
    """Stop it and wait until all of it is gone."""
    if found["unit"]:
        subprocess.run(["systemctl", "disable", "--now", found["unit"]], check=True)
    elif found["pids"]:
        _end_whole(found["pids"])
    until = time.monotonic() + END_S
    while time.monotonic() < until and _left(found["pids"]):
        time.sleep(0.2)
    _signal(_left(found["pids"]), signal.SIGKILL)
    time.sleep(0.5 if _left(found["pids"]) else 0)


def _end_whole(pids: list[int]) -> None:
    """Stop the launcher; whatever outlives it is stopped with it, before it can look for a parent.

    A scheduler that fails sends SIGQUIT to its parent. When its launcher is gone, that is PID 1: in a container systemd
    ends of it, and the container with it. So what is left is frozen in the moment in which the launcher is gone, and
    killed. A launcher that ends its children itself leaves nothing.
    """
    launcher = pids[0]
    whole = _whole(pids)
    _signal([launcher], signal.SIGTERM)
    until = time.monotonic() + END_S
    while time.monotonic() < until and _left([launcher]):
        time.sleep(POLL_S)
        whole += [pid for pid in proc.descendants(launcher) if pid not in whole]
    left = _left(whole)
    _signal(left, signal.SIGSTOP)  # nobody of them sees another one end
    _signal(left, signal.SIGKILL)
    pids += [pid for pid in left if pid not in pids]


def _whole(pids: list[int]) -> list[int]:
    """These, and what else is in the process groups that they lead: a child that was left behind by its parent."""
    led = {pid for pid in pids if proc.group(proc.process(pid)) == pid}
    others = [int(one.name) for one in proc.processes() if proc.group(one) in led]
    return [*pids, *(pid for pid in others if pid not in pids)]


def _is_ours(name: str) -> bool:
    return any(ours == name or (len(name) > 3 and ours.startswith(name)) for ours in OURS)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _left(pids: list[int]) -> list[int]:
    """Those that have not ended; one that has, and waits for its parent to ask, has no words any more."""
    return [pid for pid in pids if proc.words(proc.process(pid))]


def _is_all_of(unit: str, pids: list[int]) -> bool:
    """Whether the service is this server and nothing else but, at most, the program that starts it.

    A server started from a terminal of a notebook or of a remote login is in that service's control group: ending the
    service would end what people work with.
    """
    if "ssh" in unit or "cron" in unit:
        return False
    others = {int(process.name) for process in proc.processes() if unit in proc.services(process)} - {*pids}
    return not others or others == {proc.parent(proc.process(pids[0]))}
