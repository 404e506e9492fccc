"""Run programs on the outer machine: errors for people, and no orphan when gpubox itself is killed."""

import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from gpubox.support.errors import GpuboxError

OnLine = Callable[[str], None]
_TAIL_LINES = 15


def run(*argv: str, stdin: str | None = None, ok: Sequence[int] = (0,), cwd: Path | None = None) -> str:
    """Run a program and return its standard output; an exit code outside `ok` is a GpuboxError with the last lines."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode not in ok:
        raise _failed(argv, done.returncode, (done.stdout + done.stderr).splitlines())
    return done.stdout


def succeeds(*argv: str) -> bool:
    """Whether a program that answers by 0 = yes, 1 = no says yes; any other exit code is a GpuboxError."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise _failed(argv, done.returncode, (done.stdout + done.stderr).splitlines())
    return done.returncode == 0


def stream(argv: Sequence[str], on_line: OnLine, env: dict[str, str] | None = None) -> None:
    """Run a long program, handing each line of output to `on_line`; failing is a GpuboxError with the last lines."""
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        for line in process.stdout or ():
            tail.append(line.rstrip())
            on_line(line.rstrip())
    if process.returncode != 0:
        raise _failed(argv, process.returncode, tail)


def guarded(*argv: str) -> list[str]:
    """The same program in its own mount and process namespace, which ends with gpubox: no mount or writer is left."""
    dies_with_parent = ("setpriv", "--pdeathsig", "KILL")
    return [*dies_with_parent, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *argv]


def _failed(argv: Sequence[str], code: int, lines: Sequence[str]) -> GpuboxError:
    tail = "\n".join(f"    {line}" for line in list(lines)[-_TAIL_LINES:])
    return GpuboxError(f"`{' '.join(argv)[:200]}` failed with exit code {code}:\n{tail}")
