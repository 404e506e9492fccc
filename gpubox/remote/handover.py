"""Find the server that runs by hand with the very flags that the unit is to have, and end it. Standard library only.

Run as root: `python3 -I -c SCRIPT look|end|again`, one JSON object on stdin: `flags` (the words after the launcher),
`unit` (the service's own name: what it holds is never meant), `venv_link` (the path that points at the current venv).

`look` and `end` print {"pids": [...], "unit": ...}: the server with all its descendants, and the systemd service that
holds it; no pids: there is none. Another server than the one meant, with one flag that differs, is never touched. `end`
stops it as it was started: its service is stopped and disabled, a process of a login gets SIGTERM, and after a minute
SIGKILL. `again`: the unit has never answered, so it gives way to what was ended, started as it was.
Exit codes: 0 done, 1 it did not end, or nothing was ended that could be started again.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from gpubox.remote import config_file
from gpubox.remote.launchers import launch

LAUNCHER = "sglang.launch_server"
OURS = ("api-key", "config", "revision", "admin-api-key", "ssl-keyfile-password", "watermark-key")
"""Flags that gpubox gives in its own way, or has no place for: they may differ."""
END_S = 60.0
ENDED = Path("/var/lib/gpubox/ended.json")
"""How the server that was ended was started; gone once a release has answered (gpubox.remote.switch)."""
LOG = Path("/var/lib/gpubox/ended.log")
"""What it says when it was started again."""
PROC = Path("/proc")


def main() -> int:
    """Look, end, or start again; prints what was found."""
    asked = json.loads(sys.stdin.read())
    if sys.argv[1] == "again":
        return again(asked["unit"], asked["venv_link"])
    found = look(asked["flags"], asked["unit"])
    if sys.argv[1] == "end":
        remember(found)
        end(found)
        left = [pid for pid in found["pids"] if _words(pid)]
        if left:
            print(f"processes {left} did not end", file=sys.stderr)
            return 1
    print(json.dumps(found))
    return 0


def look(flags: list[str], unit: str) -> dict:  # type: ignore[type-arg]  # plain JSON: this file runs on old Pythons too
    """The server with these flags outside of the unit."""
    wanted = settings(flags)
    for pid in sorted(int(path.name) for path in PROC.iterdir() if path.name.isdigit()):
        words = server_words(pid)
        if words is None or not _is_seen_here(pid):
            continue
        if settings(words) == wanted and unit not in (services := _services(pid)):
            pids = [pid, *_descendants(pid)]
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


def server_words(pid: int) -> "list[str] | None":
    """The flags of a server with their values, those of its file (`--config`) before its own; None: no SGLang."""
    folder = _link(pid, "cwd")
    found = launch(_words(pid), folder, _link(pid, "exe"))
    if found is None or found.engine != "sglang":
        return None
    if "--config" not in found.words[:-1]:
        return found.words
    try:
        items = config_file.read(Path(folder, found.words[found.words.index("--config") + 1]).read_text())
    except (OSError, ValueError):
        return found.words
    return [*_as_words(items), *found.words]


def _as_words(items: list) -> list[str]:  # type: ignore[type-arg]  # pairs of a name and what it says
    words: list[str] = []
    for name, value in items:
        if value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words += [str(one) for one in (value if isinstance(value, list) else [value])]
    return words


def remember(found: dict) -> None:  # type: ignore[type-arg]  # as above
    """Keep how it was started, for root alone: its environment may hold secrets."""
    if not found["pids"]:
        return
    process = PROC / str(found["pids"][0])
    how = {"unit": found["unit"], "argv": _words(found["pids"][0])}
    if not found["unit"]:
        pairs = [pair.partition("=") for pair in os.fsdecode((process / "environ").read_bytes()).split("\0") if pair]
        owner = process.stat()
        how["environment"] = {name: value for name, _, value in pairs}
        how.update(folder=str((process / "cwd").readlink()), user=owner.st_uid, group=owner.st_gid)
    beside = ENDED.with_name(f".{ENDED.name}.gpubox-new")
    beside.unlink(missing_ok=True)
    beside.touch(0o600)
    beside.write_text(json.dumps(how))
    beside.replace(ENDED)


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


def end(found: dict) -> None:  # type: ignore[type-arg]  # as above
    """Stop it and wait until all of it is gone."""
    if found["unit"]:
        subprocess.run(["systemctl", "disable", "--now", found["unit"]], check=True)
    elif found["pids"]:
        _signal(found["pids"][:1], signal.SIGTERM)
    until = time.monotonic() + END_S
    while time.monotonic() < until and any(_words(pid) for pid in found["pids"]):
        time.sleep(0.2)
    _signal([pid for pid in found["pids"] if _words(pid)], signal.SIGKILL)
    time.sleep(0.5 if any(_words(pid) for pid in found["pids"]) else 0)


def _is_ours(name: str) -> bool:
    return any(ours == name or (len(name) > 3 and ours.startswith(name)) for ours in OURS)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _words(pid: int) -> list[str]:
    try:
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def _link(pid: int, name: str) -> str:
    try:
        return str((PROC / str(pid) / name).readlink())
    except OSError:
        return ""


def _is_seen_here(pid: int) -> bool:
    """Whether it lives among these processes: what a container holds, its own programs start and stop."""
    try:
        return (PROC / str(pid) / "ns/pid").readlink() == (PROC / "self/ns/pid").readlink()
    except OSError:
        return True


def _services(pid: int) -> list[str]:
    """The services in whose control groups it is, outermost first."""
    try:
        text = (PROC / str(pid) / "cgroup").read_text()
    except OSError:
        return []
    return [unit for unit in re.findall(r"/([^/\s]+\.service)\b", text) if not unit.startswith("user@")]


def _is_all_of(unit: str, pids: list[int]) -> bool:
    """Whether the service is this server and nothing else but, at most, the program that starts it.

    A server started from a terminal of a notebook or of a remote login is in that service's control group: ending the
    service would end what people work with.
    """
    if "ssh" in unit or "cron" in unit:
        return False
    others = {int(p.name) for p in PROC.iterdir() if p.name.isdigit() and unit in _services(int(p.name))} - {*pids}
    return not others or others == {_parent(pids[0])}


def _parent(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _descendants(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for path in PROC.iterdir():
        try:
            if path.name.isdigit():
                parents[int(path.name)] = _parent(int(path.name))
        except OSError:
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


if __name__ == "__main__":
    sys.exit(main())
