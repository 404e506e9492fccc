"""`gpubox lock`: resolve the inputs of stacks into locks with hashes, or check that the locks fit their inputs."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from gpubox.settings import lockfile, stack
from gpubox.settings.stack import LOCAL_LOCK, Lock, Stack
from gpubox.support import files, paths
from gpubox.support.errors import GpuboxError

_PLATFORM = "x86_64-manylinux_2_34"
"""What locks are made for, wherever they are made: SGLang 0.5.23 ships wheels for glibc 2.34 (Debian 12: 2.36)."""


@click.command("lock")
@click.argument("names", nargs=-1, metavar="[STACK]...")
@click.option("--all", "everything", is_flag=True, help="Every stack.")
@click.option("--check", is_flag=True, help="Change nothing and use no network; exit code 1 when a lock does not fit.")
def command(names: tuple[str, ...], everything: bool, check: bool) -> None:
    """Lock stacks: resolve stacks/NAME/*.in into *.lock with hashes.

    Versions that a lock has are kept as long as they fit; delete the lock first for the newest ones.
    """
    chosen = stack.names() if everything else list(names)
    if not chosen:
        raise GpuboxError("no stack was named", f"--all, or some of: {', '.join(stack.names())}")
    stacks = [stack.load(name, locked=False) for name in chosen]
    if not check:
        _refuse_shipped(stacks)
        for path in (each.folder / lock.file for each in stacks for lock in each.locks):
            files.check_file(path)
        for each in stacks:
            _make(each)
    found = [problem for each in stacks for problem in problems(each)]
    if found:
        raise GpuboxError("\n".join(found), "locks made from the inputs as they are", "gpubox lock STACK")
    for each in stacks:
        click.echo(f"{each.name}: {len(each.pins)} packages locked")


def problems(wish: Stack) -> list[str]:
    """Why the committed locks of a stack do not fit its inputs; empty: they do. Nothing is resolved anew."""
    found = [wish.stale_wheels()] if wish.local_packages else []
    for lock in wish.locks:
        path = wish.folder / lock.file
        if not path.is_file():
            found.append(f"{path} is not there")
        elif path.read_text().split("\n", 1)[0] != _stamp(wish, lock):
            found.append(f"{path} was made from other inputs")
    return [problem for problem in found if problem]


def _refuse_shipped(stacks: list[Stack]) -> None:
    """Locks are written beside their inputs; those of an installed gpubox are nobody's to change."""
    shipped = [each for each in stacks if paths.is_installed() and paths.is_shipped(each.folder)]
    if shipped:
        first = shipped[0]
        raise GpuboxError(
            f"shipped with gpubox, not yours to lock: {', '.join(each.name for each in shipped)}",
            "a stack of your own project",
            f"cp -r {first.folder} stacks/NAME, then gpubox lock NAME; --check only looks",
        )


def _make(wish: Stack) -> None:
    for lock in wish.locks:
        click.echo(f"{wish.name}: resolving {lock.file} ...", err=True)
        text = _resolved(wish, lock)
        lockfile.parse(text, f"what uv gave for {lock.file}")
        files.write(wish.folder / lock.file, f"{_stamp(wish, lock)}\n{text}")
    if wish.local_packages:
        files.write(wish.folder / LOCAL_LOCK, wish.local_lock())


def _stamp(wish: Stack, lock: Lock) -> str:
    inputs = {name: (wish.folder / name).read_text() for name in lock.inputs}
    return lockfile.stamp(inputs, python=wish.python, platform=_PLATFORM, no_deps=lock.no_deps)


def _resolved(wish: Stack, lock: Lock) -> str:
    with tempfile.TemporaryDirectory(prefix="gpubox-lock-") as scratch:
        result = Path(scratch) / lock.file
        if (wish.folder / lock.file).is_file():
            shutil.copy(wish.folder / lock.file, result)  # uv keeps the versions that its output file already has
        done = subprocess.run(_compile(wish, lock, result), cwd=wish.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise GpuboxError(f"uv cannot lock {wish.name}/{lock.file}:\n{done.stderr.strip()}", "inputs that resolve")
        return result.read_text()


def _compile(wish: Stack, lock: Lock, result: Path) -> list[str]:
    links = (os.environ.get("PIP_FIND_LINKS") or wish.find_links).split() if wish.find_links else []
    return [
        *(_uv(), "pip", "compile", lock.inputs[0], "--output-file", str(result)),
        *("--generate-hashes", "--no-header", "--annotation-style", "line"),
        *("--python-version", wish.python, "--python-platform", _PLATFORM),
        *(["--no-deps"] if lock.no_deps else []),
        *(["--override", lock.overrides] if lock.overrides else []),
        *(part for link in links for part in ("--find-links", link)),
    ]


def _uv() -> str:
    found = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if found is None:
        raise GpuboxError("no uv beside this Python or in PATH", "uv, which is installed with gpubox", "pip install uv")
    return found
