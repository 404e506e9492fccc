"""List the model servers that run here, as JSON. Runs on the machine that is looked at.

What is secret is masked here, before it is printed: the values never leave the machine.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from pathlib import Path

from gpubox.remote import bindings, config_file, interpreter, proc, secrets
from gpubox.remote.launchers import launch

SESSION = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|_|TERM|MAIL|LANG|LANGUAGE|LC_\w+|LS_COLORS|HOSTNAME|TMUX\w*|STY"
    r"|DISPLAY|COLORTERM|PS\d|VIRTUAL_ENV\w*|CONDA_\w+|SSH_\w+|XDG_\w+|DBUS_\w+|SUDO_\w+|EDITOR|VISUAL|LESS\w*|NOHUP"
    r"|MOTD_SHOWN|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_\w+|MEMORY_PRESSURE_\w+|WATCHDOG_\w+|NOTIFY_SOCKET|GPUBOX_\w+|container)"
)
RELEVANT = re.compile(
    r"(CUDA|NCCL|NVIDIA|NVSHMEM|UCX|GLOO|SGLANG|SGL|TORCH|PYTORCH|TRITON|FLASHINFER|TVM|OMP|MKL|OPENBLAS|HF|TRANSFORMERS"
    r"|SAFETENSORS|TOKENIZERS|PYTHON|LD|VLLM|DG|DEEP|NUMA|MALLOC)[A-Z0-9_]*"
)
"""What bears on a model server, even where every login here has it."""
HELD = re.compile(r"(docker|libpod|containerd|crio)[-/:]([0-9a-f]{12})[0-9a-f]*")
OF_A_USER = re.compile(r"/user@\d+\.service/(?:[^/\s]+/)*([^/\s]+\.service)$", re.M)
PATH_FLAG = re.compile(r"(path|paths|template|file|folder|dir|config)$|^--model$")


def main(words: list[str]) -> int:
    """Print them. It takes no words."""
    print(json.dumps(servers()))
    return 0


def servers() -> list[dict[str, object]]:
    """One object a server, the launching process only."""
    every = {int(process.name): proc.words(process) for process in proc.processes()}
    found = {pid: argv for pid, argv in every.items() if _is_the_server(proc.process(pid), argv)}
    launching = [pid for pid in found if proc.parent(proc.process(pid)) not in found]
    return [_described(proc.process(pid), found[pid]) for pid in launching]


def masked(argv: list[str]) -> tuple[list[str], list[str]]:
    """The command line without its secrets, and the flags that had them."""
    words = secrets.argv(argv)
    flags: list[str] = []
    flag = ""
    for before, word in zip(argv, words):
        name = before.partition("=")[0]
        flag = name if name.startswith("--") else flag
        if word != before:
            flags.append(secrets.flag_meant(flag) or flag.lstrip("-"))
    return words, flags


def environment(pairs: list[str], login: dict[str, str]) -> tuple[dict[str, str], list[str], list[str]]:
    """The variables that somebody set for the server; names of secret ones, whose values are left out; and names of
    those that every login here has.

    + login: the environment of a login here, which is this program's own
    """
    values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    own = {name: value for name, value in values.items() if value and not SESSION.fullmatch(name)}
    common = sorted(name for name in own if login.get(name) == own[name] and not RELEVANT.fullmatch(name))
    secret = sorted(name for name, value in own.items() if secrets.is_secret(name, value))
    kept = {name: value for name, value in own.items() if name not in secret and name not in common}
    return kept, secret, common


def holder(groups: str, same_namespace: bool = True) -> str:
    """Who would start the server again, or hides its files, so that gpubox cannot take its place; empty: nobody.

    + groups: the text of /proc/PID/cgroup
    + same_namespace: it lives among the processes that are seen here, not in a container
    """
    if found := HELD.search(groups):
        return f"{found[1]} container {found[2]}"
    if not same_namespace:
        return "a container"
    return f"{service[1]} of a user" if (service := OF_A_USER.search(groups)) else ""


def _described(process: Path, argv: list[str]) -> dict[str, object]:
    words, secret_flags = masked(argv)
    pairs = proc.words(process, "environ")
    variables, secret_variables, common = environment(pairs, dict(os.environ))
    everything = proc.variables(process)
    folder, groups = proc.link(process, "cwd"), proc.text(process, "cgroup")
    runs = interpreter.environment(process, argv[0], folder, everything)
    cache, revision = _hub(argv, everything)
    started = launch(words, folder, proc.link(process, "exe"))
    flags = started.words if started else words
    return {
        "pid": int(process.name),
        "argv": words,
        "environment": variables,
        "secret_flags": secret_flags,
        "secret_variables": secret_variables,
        "common_variables": common,
        "empty_variables": sorted(n for n, v in everything.items() if not v and not SESSION.fullmatch(n)),
        "unit": _unit(groups),
        "held": holder(groups, proc.is_seen_here(process)),
        "user": _user(process),
        "folder": folder,
        "relative": _relative(flags, folder),
        "venv": runs.prefix,
        "sglang": interpreter.version(runs.sites, "sglang"),
        "torch": interpreter.version(runs.sites, "torch"),
        "source": interpreter.sources(runs.sites, interpreter.searched_first(argv, folder, everything), "sglang"),
        # a child of the service, and what a drop-in starts instead, carry the stamp too
        "release": everything.get("GPUBOX_RELEASE", "") if argv[0].startswith(_OURS) else "",
        "cache": cache,
        "revision": revision,
        "config": _config(flags, folder),
        "process": bindings.bindings(process),
    }


_OURS = "/var/lib/gpubox/venvs/"
"""Where the programs of releases lie."""


def _config(words: list[str], folder: str) -> list[object] | None:
    """What the file of `--config` says, as [name, value] pairs in its order; None: no such flag, or a file that cannot
    be read here. SGLang reads it only where name and file are two words. Secrets are masked."""
    if "--config" not in words[:-1]:
        return None
    try:
        found = config_file.read(Path(folder, words[words.index("--config") + 1]).read_text())
    except (OSError, ValueError):
        return None
    return [[name, secrets.data(value, f"--{name}")] for name, value in found]


def _is_the_server(process: Path, argv: list[str]) -> bool:
    return _is_server(argv, proc.link(process, "cwd"), proc.link(process, "exe"))


def _is_server(argv: list[str], folder: str = "", program: str = "") -> bool:
    return launch(argv, folder, program) is not None


def _unit(groups: str) -> str:
    """The service of its control group; a login session's scope is none."""
    found = [m[1] for line in groups.splitlines() if (m := re.search(r"/system\.slice/([^/]+\.service)", line))]
    return next((unit for unit in found if unit not in {"ssh.service", "sshd.service", "cron.service"}), "")


def _user(process: Path) -> str:
    """The name of whom it runs as; the number, where it has no name here."""
    try:
        number = process.stat().st_uid
    except OSError:
        return ""
    return next((entry.pw_name for entry in pwd.getpwall() if entry.pw_uid == number), str(number))


def _relative(words: list[str], folder: str) -> list[str]:
    """Words that are paths seen from the server's working directory; what `--config` names was read there."""
    found, name = [], ""
    for word in words:
        is_flag = word.startswith("--")
        name = word.partition("=")[0] if is_flag else name
        if name != "--config" and _is_relative(word, folder, bool(PATH_FLAG.search(name))):
            found.append(word)
    return found


def _is_relative(word: str, folder: str, of_a_path: bool) -> bool:
    """A path that only means something in the server's working directory; without a slash only where a path belongs."""
    after = word.partition("=")[2]
    values = [after] if word.startswith("--") else [word, after]  # as --lora-paths NAME=PATH
    return any(_is_there(value, folder) for value in values if "/" in value or of_a_path)


def _is_there(value: str, folder: str) -> bool:
    if not value or value[0] in "/~{":
        return False
    try:
        return Path(folder, value).exists()
    except (OSError, ValueError):  # too long for a name: a text
        return False


def _hub(argv: list[str], variables: dict[str, str]) -> tuple[str, str]:
    """The hub's cache that holds the model, and its commit; empty: the model has a path, or lies nowhere there."""
    names = [word.partition("=")[2] or after for word, after in zip(argv, [*argv[1:], ""]) if _names_model(word)]
    home = variables.get("HF_HOME") or f"{variables.get('HOME', '/root')}/.cache/huggingface"
    cache = Path(variables.get("HF_HUB_CACHE") or f"{home}/hub")
    for name in names:
        ref = cache / f"models--{name.replace('/', '--')}" / "refs" / "main"
        if not name.startswith(("/", ".", "~")) and ref.is_file():
            return str(cache), ref.read_text().strip()
    return "", ""


def _names_model(word: str) -> bool:
    return word.partition("=")[0] in {"--model", "--model-path"}
