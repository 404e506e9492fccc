"""Run a program of the box and take its output."""

from __future__ import annotations

import subprocess


class CommandError(Exception):
    """The program did not do what it was told, is not there, or takes too long."""


def output(words: list[str], timeout_s: float | None = 60, nothing: int = 0) -> str:
    """What a program printed. Error: CommandError.

    + timeout_s: None: as long as it takes
    + nothing: an exit code that says, without a word, that there is nothing to print
    """
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{words[0]}: {error}") from error
    if done.returncode != 0 and (done.returncode, done.stderr) != (nothing, ""):
        said = (done.stderr or done.stdout).strip()
        raise CommandError(f"{' '.join(words)}: exit code {done.returncode}: {said}")
    return done.stdout


def properties(unit: str, *names: str) -> dict[str, str]:
    """What systemd says of a unit: property -> value. Error: CommandError."""
    asked = [f"--property={','.join(names)}"]
    lines = output(["systemctl", "show", unit, "--no-pager", *asked]).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
