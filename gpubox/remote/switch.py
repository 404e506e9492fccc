"""Change which release a service runs from, on the box; nothing is left half done.

Run as root with an ACTION, and one JSON object on stdin (`Arguments`). Prints one JSON object, the state after it.
Exit codes: 0 done, 1 refused or failed (why: on stderr), 2 could not tell (wrong arguments, no systemctl).

    state      say what is there; changes nothing
    switch     run DIGEST: unit, links, daemon-reload, restart. Nothing when it runs already
    verified   DIGEST is current and answered: only such a release is ever gone back to
    rollback   back to DIGEST, or to the last verified release that is not the current one
    prune      remove old releases and venvs, never one that is current, previous or the last `keep` verified

The unit of a release names its files by the digest, so systemd always has one whole release loaded; the unit's file is
replaced by a rename. A run that is killed anywhere is finished by the next one. A process runs a release only if all
that it has loaded of venvs is of the venv that bears that name now: one that was repaired is another.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpubox.remote import command, effective, files, proc, secrets
from gpubox.remote.arguments import parse
from gpubox.remote.command import CommandError
from gpubox.remote.effective import Asked, Effective

DONE, FAILED, CANNOT_TELL = 0, 1, 2
STAMP = "GPUBOX_RELEASE"
GOING = ".gpubox-old"
_VARIABLE = re.compile(r'^([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"$', re.M | re.S)
"""A variable of an EnvironmentFile that gpubox.server.systemd wrote; its value may go over several lines."""


@dataclass(frozen=True)
class Arguments:
    """Where, and what."""

    unit: str
    """As `sglang.service`."""
    digest: str = ""
    """The release that is meant."""
    venv_link: str = ""
    """A path that shall point at the current venv, as `/root/ml-env`; empty: none."""
    by: str = ""
    """Who asks for it, as `user@machine`; `gpubox releases` says so."""
    keep: int = 3
    """Verified releases to keep besides the current and the previous one."""
    root: str = "/var/lib/gpubox"
    units: str = "/etc/systemd/system"
    system: str = "/"
    """Below it lie systemd's other directories."""
    proc: str = "/proc"

    @property
    def releases(self) -> Path:
        """Folder of the releases."""
        return Path(self.root) / "releases"

    @property
    def release(self) -> Path:
        """The release that is meant."""
        return self.releases / self.digest

    def link(self, name: str) -> Path:
        """`current` or `previous`."""
        return Path(self.root) / name


class RefusedError(Exception):
    """Not done, and nothing was changed."""


def switch(arguments: Arguments) -> None:
    """Run the release. What it replaces becomes `previous` only if it was verified; the new one must answer anew."""
    _check_whole(arguments, arguments.digest)
    before = _target(arguments.link("current"))
    if before not in {None, arguments.digest} and _is_verified(arguments, str(before)):
        files.link(arguments.link("previous"), f"releases/{before}")
    if before != arguments.digest:
        _mark(arguments, arguments.digest, "verified").unlink(missing_ok=True)
    _make_current(arguments, arguments.digest)


def verified(arguments: Arguments) -> None:
    """Remember that the current release answered."""
    if _target(arguments.link("current")) != arguments.digest:
        raise RefusedError(f"{arguments.digest} is not the current release")
    files.write(_mark(arguments, arguments.digest, "verified"), datetime.now(timezone.utc).isoformat().encode(), 0o600)
    for name in ("ended.json", "ended.log"):  # of gpubox.remote.handover: nobody goes back to that server any more
        (Path(arguments.root) / name).unlink(missing_ok=True)


def rollback(arguments: Arguments) -> None:
    """Run an earlier release: the one named, else the last verified one that is not current."""
    current = _target(arguments.link("current"))
    earlier = [digest for digest in _verified_ones(arguments) if digest != current]
    target = arguments.digest or (earlier[0] if earlier else "")
    if not target:
        raise RefusedError("there is no earlier release that ever answered: this one stays, correct it and run again")
    _check_whole(arguments, target)
    left = [digest for digest in earlier if digest != target]
    if left:
        files.link(arguments.link("previous"), f"releases/{left[0]}")
    else:
        arguments.link("previous").unlink(missing_ok=True)
    _make_current(arguments, target)


def prune(arguments: Arguments) -> None:
    """Remove what nothing runs from and nothing goes back to."""
    for path in _superfluous(arguments):
        for kind in ("verified", "by"):
            _mark(arguments, path.name, kind).unlink(missing_ok=True)
        _remove_folder(path)


def state(arguments: Arguments) -> dict[str, Any]:
    """What is there. `unit`: the release whose unit systemd has; `runs`: the release that the process was started from;
    `linked`: whether the link to the venv is that of the current release; `superfluous`: what `prune` would remove."""
    loaded, current = _unit_path(arguments), _target(arguments.link("current"))
    names = [path.name for path in _folders(arguments.releases) if _about(arguments, path.name)]
    names = [name for name in names if not name.endswith(GOING)]
    link = Path(arguments.venv_link)
    return {
        "current": current,
        "previous": _target(arguments.link("previous")),
        "unit": next((name for name in names if _same(loaded, arguments.releases / name / "unit")), None),
        "runs": _running(arguments),
        "linked": not arguments.venv_link or (link.is_symlink() and link.readlink() == _venv(arguments, current)),
        "effective": asdict(_effective(arguments, current)) if current else {},
        "loose": _loose(arguments),
        "releases": [_described(arguments, name) for name in sorted(names)],
        "superfluous": [path.name for path in _superfluous(arguments)],
    }


ACTIONS = {"state": lambda _: None, **{f.__name__: f for f in (switch, verified, rollback, prune)}}


def main(words: list[str]) -> int:
    """Read the arguments, act, print the state; returns the exit code."""
    try:
        act = ACTIONS[words[0]]
        arguments = parse(Arguments, sys.stdin.read())
    except LookupError:
        print(f"{words}: needed is one of {'|'.join(ACTIONS)}", file=sys.stderr)
        return CANNOT_TELL
    except ValueError as error:
        print(error, file=sys.stderr)
        return CANNOT_TELL
    try:
        with _alone(arguments) if words[0] != "state" else contextlib.nullcontext():
            act(arguments)
        print(json.dumps(state(arguments)))
    except (RefusedError, CommandError) as error:
        print(error, file=sys.stderr)
        return FAILED
    except OSError as error:
        print(error, file=sys.stderr)
        return CANNOT_TELL
    return DONE


def _superfluous(arguments: Arguments) -> list[Path]:
    """Folders of releases, then of venvs, then of what was compiled in them (gpubox.server.jit)."""
    linked = {_target(arguments.link("current")), _target(arguments.link("previous"))}
    older = [digest for digest in _verified_ones(arguments) if digest not in linked]
    kept = linked | set(older[: arguments.keep])
    venvs = {_about(arguments, digest).get("venv") for digest in kept if digest}
    found = [path for path in _folders(arguments.releases) if path.name not in kept]
    by_venv = [path for folder in ("venvs", "jit") for path in _folders(Path(arguments.root) / folder)]
    return found + [path for path in by_venv if path.name not in venvs]


def _make_current(arguments: Arguments, digest: str) -> None:
    """In this order: what is current is written down before it runs, so that the next run knows what to finish."""
    release = arguments.releases / digest
    if _target(arguments.link("current")) != digest:
        files.write(_mark(arguments, digest, "by"), arguments.by.encode(), 0o600)
    files.link(arguments.link("current"), f"releases/{digest}")
    if arguments.venv_link:
        _point(arguments, Path(arguments.venv_link), _venv(arguments, digest))
    theirs = _effective(arguments, digest).aside
    if any(one["restart"] for one in theirs):
        # Stopped before its drop-ins go: a run killed in between leaves a server that the next one sees to start.
        _systemctl("stop", arguments.unit)
    if not _same(_unit_path(arguments), release / "unit") or _unit_path(arguments).is_symlink():
        _keep_theirs(arguments)
        files.write(_unit_path(arguments), (release / "unit").read_bytes(), 0o644)
    _put_aside(arguments, [Path(one["path"]) for one in theirs])
    _have_read(arguments)
    _tighten(arguments)
    if _running(arguments) != digest:
        _systemctl("stop", arguments.unit)
        _end_orphans(arguments)
        with contextlib.suppress(CommandError):  # nothing has failed
            # The start limit counts earlier failures too; this start is a person's wish.
            _systemctl("reset-failed", arguments.unit)
        _systemctl("start", arguments.unit)
    _check_loaded(arguments, digest)


def _effective(arguments: Arguments, digest: str) -> Effective:
    """What systemd has and what runs, against what the release asks for."""
    units, system, proc = Path(arguments.units), Path(arguments.system), Path(arguments.proc)
    return effective.look(arguments.unit, _asked(arguments, digest), units, system, proc)


def _asked(arguments: Arguments, digest: str) -> Asked:
    folder = arguments.releases / digest
    texts = {name: _text(folder / name) for name in ("unit", "environment")}
    return Asked(texts["unit"], files.read_json(folder / "argv.json", []), texts["environment"])


def _check_loaded(arguments: Arguments, digest: str) -> None:
    """What could not be put right: a file for many services goes against the unit, and is not ours to take away."""
    now = _effective(arguments, digest)
    against = [one for one in now.shared if one["severe"]]
    said = [f"{one['path']} sets {', '.join(one['sets'])} for more services than this" for one in against]
    said += now.differs
    if said:
        told = "; ".join(said)
        raise CommandError(f"{arguments.unit} is not in effect as its release asks: {told}; take that away, run again")


def _have_read(arguments: Arguments) -> None:
    """systemd knows the unit's file as it lies there and starts it at boot; it reads nothing anew without need.

    A reload takes the cards from docker containers that got them by NVIDIA's hook (NVIDIA/nvidia-docker#1730), and
    `enable` is one, too.
    """
    found = command.properties(arguments.unit, "LoadState", "NeedDaemonReload", "UnitFileState")
    if (found.get("LoadState"), found.get("NeedDaemonReload")) != ("loaded", "no"):
        _systemctl("daemon-reload")
    if found.get("UnitFileState") != "enabled":
        _systemctl("enable", "--quiet", arguments.unit)


def _running(arguments: Arguments) -> str | None:
    found = command.properties(arguments.unit, "ActiveState", "MainPID")
    process = Path(arguments.proc) / found.get("MainPID", "0")
    if found.get("ActiveState") not in {"active", "activating", "reloading"}:
        return None
    stamp = proc.variables(process).get(STAMP)
    if stamp is None or not _loaded_from(arguments, process, _venv(arguments, stamp)):
        return None
    # a program that a drop-in starts instead inherits the stamp
    return stamp if effective.not_asked_for(process, _asked(arguments, stamp)) is None else None


def _loaded_from(arguments: Arguments, process: Path, venv: Path) -> bool:
    """Whether all libraries below venvs/ that the process has in memory are those that lie in `venv` now."""
    paths = [line.split(None, 5)[-1] for line in proc.text(process, "maps").splitlines()]
    own = [path for path in paths if path.startswith(f"{arguments.root}/venvs/")]
    return all(path.startswith(f"{venv}/") and not path.endswith(" (deleted)") for path in own)


def _keep_theirs(arguments: Arguments) -> None:
    """A unit that gpubox did not write goes aside with its drop-ins, as a folder at the venv's place does: an ExecStart
    in a drop-in would start something else than the release."""
    path = _unit_path(arguments)
    if path.is_file() and b"Written by gpubox" in path.read_bytes():
        return
    kept, now = Path(arguments.root) / "kept", f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    more = path.with_name(f"{path.name}.d")
    if path.is_file() or more.is_dir():
        kept.mkdir(mode=0o700, exist_ok=True)
    if path.is_file():
        files.write(kept / f"{path.name}.old-{now}", path.read_bytes(), 0o600)
    if more.is_dir():
        shutil.move(more, kept / f"{more.name}.old-{now}")


def _put_aside(arguments: Arguments, paths: list[Path]) -> None:
    """Files that change this unit alone, as `systemctl edit` and `set-property` make them: kept, never lost. One that
    a package brought stays, and is masked."""
    now = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    folder = Path(arguments.root) / "kept" / f"{arguments.unit}.d.old-{now}"
    for path in (path for path in paths if os.path.lexists(path)):
        if _is_packaged(arguments, path):
            mask = _unit_path(arguments).with_name(f"{arguments.unit}.d") / path.name
            mask.parent.mkdir(exist_ok=True)
            mask.symlink_to(os.devnull)
            continue
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name, count = path.name, 1
        while os.path.lexists(folder / name):
            count += 1
            name = f"{path.name}.{count}"
        shutil.move(str(path), str(folder / name))
        with contextlib.suppress(OSError):  # other files lie there
            if path.parent.name.endswith(".d"):
                path.parent.rmdir()


def _is_packaged(arguments: Arguments, path: Path) -> bool:
    libraries = [Path(arguments.system) / place for place in ("usr/lib", "lib")]
    return any(library in path.parents for library in libraries)


def _loose(arguments: Arguments) -> list[str]:
    """Folders of ours that somebody else may write, or owns: what lies in them would be run as root."""
    root = Path(arguments.root)
    above = [root, *(root / name for name in ("releases", "venvs", "jit", "kept", "recipes", "stacks"))]
    folders = [path for folder in above for path in (folder, *(_folders(folder) if folder != root else ()))]
    return [str(path) for path in folders if path.is_dir() and _is_loose(path)]


def _is_loose(path: Path) -> bool:
    found = path.lstat()
    return found.st_uid != os.getuid() or bool(found.st_mode & 0o022)


def _tighten(arguments: Arguments) -> None:
    for path in map(Path, _loose(arguments)):
        os.chown(path, os.getuid(), os.getgid())
        path.chmod(path.stat().st_mode & ~0o022)


def _end_orphans(arguments: Arguments) -> None:
    """Processes that are left in the control group of the stopped unit: they would keep the cards' memory."""
    for _ in range(100):
        everything = proc.processes(Path(arguments.proc))
        left = [int(process.name) for process in everything if proc.is_in(process, arguments.unit)]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    raise OSError(f"processes {left} of {arguments.unit} cannot be ended")


def _check_whole(arguments: Arguments, digest: str) -> None:
    """The release is there, its files are what its release.json says, and so is its venv."""
    folder, about = arguments.releases / digest, _about(arguments, digest)
    if not digest or not about:
        raise RefusedError(f"there is no release {digest!r} below {arguments.releases}")
    whole = [path for path in folder.iterdir() if not path.name.endswith(files.UNFINISHED)]  # left by a killed run
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in whole}
    found.pop("release.json")
    if found != about["files"] or about["digest"] != digest:
        wrong = sorted(name for name in found.keys() | about["files"] if found.get(name) != about["files"].get(name))
        raise RefusedError(f"{folder} is not what its release.json says: {', '.join(wrong) or about['digest']}")
    if not _venv(arguments, digest).is_dir():
        raise RefusedError(f"the venv of release {digest} is not there: {_venv(arguments, digest)}")


def _venv(arguments: Arguments, digest: str | None) -> Path:
    return Path(arguments.root) / "venvs" / str(_about(arguments, digest or "").get("venv"))


def _described(arguments: Arguments, digest: str) -> dict[str, Any]:
    """A release without secrets."""
    folder = arguments.releases / digest
    variables = _text(folder / "environment")
    return {
        **_about(arguments, digest),
        "argv": secrets.argv(files.read_json(folder / "argv.json", [])),
        "environment": [_shown(found) for found in _VARIABLE.finditer(variables)],
        "probe": files.read_json(folder / "probe.json", {}),
        "verified": _marked(arguments, digest, "verified"),
        "by": _marked(arguments, digest, "by"),
    }


def _shown(variable: re.Match[str]) -> str:
    """The line of a variable, without its value where that is secret."""
    name, value = variable[1], re.sub(r"\\(.)", r"\1", variable[2], flags=re.S)
    shown = secrets.variable(name, value)
    return variable[0] if shown == value else f"{name}={shown}"


def _about(arguments: Arguments, digest: str) -> dict[str, Any]:
    return dict(files.read_json(arguments.releases / digest / "release.json", {}))


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _mark(arguments: Arguments, digest: str, kind: str) -> Path:
    """`verified`: when it answered; `by`: who had it made current."""
    return arguments.releases / f"{digest}.{kind}"


def _marked(arguments: Arguments, digest: str, kind: str) -> str | None:
    mark = _mark(arguments, digest, kind)
    return mark.read_text() if mark.is_file() else None


def _is_verified(arguments: Arguments, digest: str) -> bool:
    return _marked(arguments, digest, "verified") is not None


def _verified_ones(arguments: Arguments) -> list[str]:
    """Newest first."""
    names = [path.name for path in _folders(arguments.releases) if _is_verified(arguments, path.name)]
    return sorted(names, key=lambda name: _marked(arguments, name, "verified") or "", reverse=True)


def _unit_path(arguments: Arguments) -> Path:
    return Path(arguments.units) / arguments.unit


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir()) if path.is_dir() else []


def _remove_folder(path: Path) -> None:
    """Out of sight first: half a folder must not pass for a whole one."""
    going = path if path.name.endswith(GOING) else path.with_name(f".{path.name}{GOING}")
    if going != path:
        path.rename(going)
    shutil.rmtree(going)


def _target(link: Path) -> str | None:
    return link.readlink().name if link.is_symlink() else None


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def _point(arguments: Arguments, link: Path, target: Path) -> None:
    """The link at the target. A folder or link that a person has there is kept aside."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(link) and not (link.is_symlink() and link.readlink().is_relative_to(arguments.root)):
        link.rename(link.with_name(f"{link.name}.old-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"))
    files.link(link, str(target))


def _systemctl(*words: str) -> None:
    command.output(["systemctl", *words], timeout_s=None)  # as long as the unit's own limits allow


@contextlib.contextmanager
def _alone(arguments: Arguments) -> Iterator[None]:
    """Waits: what a killed run has set going on the box stops and starts a server, and ends within systemd's limits."""
    arguments.releases.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (Path(arguments.root) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
