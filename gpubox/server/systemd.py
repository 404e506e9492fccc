"""Text for systemd: one place that knows its quoting of command lines, and that of environment files."""

import re

from gpubox.settings.profile import Process
from gpubox.support.errors import GpuboxError

_ESCAPES = {"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def exec_line(argv: list[str]) -> str:
    """An ExecStart= value that systemd splits into exactly `argv` (systemd.service(5), "COMMAND LINES").

    `%` and `$` are doubled, because systemd expands specifiers and variables even inside quotes (systemd#36248).
    Errors: an empty command, a program that is no absolute path, a NUL or other control character.
    """
    if not argv or not argv[0].startswith("/"):
        raise GpuboxError(f"command {argv[:1]} cannot stand in a unit", "an absolute path as its first word")
    return " ".join(_word(word) for word in argv)


def environment_file(environment: dict[str, str]) -> str:
    """The text of an EnvironmentFile= (systemd.exec(5)): NAME="value" a line, sorted; nothing is expanded in it.

    Errors: a name that is no identifier, an empty value (an empty NCCL_GRAPH_FILE breaks NCCL: leave it out), a
    control character.
    """
    return "".join(f'{name}="{_value(name, environment[name])}"\n' for name in sorted(environment))


def process_lines(process: Process) -> list[str]:
    """Settings of systemd.exec(5) for what binds a service; none where nothing is given."""
    given = {
        "CPUAffinity": process.cpus,
        "NUMAPolicy": process.numa_policy,
        "NUMAMask": process.numa_nodes,
        "Nice": process.nice,
        "OOMScoreAdjust": process.oom_score_adjust,
        "CPUSchedulingPolicy": process.cpu_scheduling,
        "CPUSchedulingPriority": process.cpu_priority,
        "IOSchedulingClass": process.io_class,
        "IOSchedulingPriority": process.io_priority,
        **{f"Limit{name}": value for name, value in sorted(process.limits.items())},
    }
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def _word(word: str) -> str:
    _refuse_control(word, "\n\t\r")
    if _PLAIN.fullmatch(word):
        return word
    return '"' + "".join(_ESCAPES.get(char, char) for char in word) + '"'


def _value(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        raise GpuboxError(f"environment variable {name!r} is no name", "letters, digits and _, no digit first")
    if value == "":
        raise GpuboxError(f"environment variable {name} is empty", "a value", "leave the variable out")
    _refuse_control(value, "\n\t")
    return re.sub(r'(["\\$`])', r"\\\1", value)


def _refuse_control(text: str, allowed: str) -> None:
    bad = sorted({char for char in text if (ord(char) < 32 and char not in allowed) or ord(char) == 127})
    if bad:
        raise GpuboxError(f"{text!r} holds control characters {bad}", "printable text")
