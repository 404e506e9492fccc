"""List the model servers that run here, as JSON. Runs on the machine that is looked at; standard library only.

What is secret is masked here, before it is printed: the values never leave the machine.
"""

import json
import os
import re
from pathlib import Path

MASK = "@@secret@@"
SECRET_FLAGS = ("api-key", "admin-api-key", "ssl-keyfile-password", "watermark-key")
SECRET_VARIABLE = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)|^(?:.*_)?APIKEY$")
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
PROC = Path("/proc")


def servers() -> list[dict[str, object]]:
    """One object a server, the launching process only."""
    found = {pid: argv for pid in _pids() if _is_server(argv := _words(pid, "cmdline"))}
    return [_described(pid, argv) for pid, argv in found.items() if _parent(pid) not in found]


def masked(argv: list[str]) -> tuple[list[str], list[str]]:
    """The command line without its secrets, and the flags that had them."""
    words, secret = list(argv), []
    for number, word in enumerate(words):
        name, equals, _ = word.partition("=")
        flag = next((f for f in SECRET_FLAGS if len(name) > 6 and name.startswith("--") and f.startswith(name[2:])), "")
        if not flag:
            continue
        secret.append(flag)
        if equals:
            words[number] = f"{name}={MASK}"
        elif number + 1 < len(words):
            words[number + 1] = MASK
    return words, secret


def environment(pairs: list[str], login: dict[str, str]) -> tuple[dict[str, str], list[str], list[str]]:
    """The variables that somebody set for the server; names of secret ones, whose values are left out; and names of
    those that every login here has.

    + login: the environment of a login here, which is this program's own
    """
    values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    own = {name: value for name, value in values.items() if value and not SESSION.fullmatch(name)}
    common = sorted(name for name in own if login.get(name) == own[name] and not RELEVANT.fullmatch(name))
    secret = sorted(name for name in own if SECRET_VARIABLE.search(name.upper()))
    kept = {name: value for name, value in own.items() if name not in secret and name not in common}
    return kept, secret, common


def _described(pid: str, argv: list[str]) -> dict[str, object]:
    words, secret_flags = masked(argv)
    pairs = _words(pid, "environ")
    variables, secret_variables, common = environment(pairs, dict(os.environ))
    folder, output = _link(pid, "cwd"), _link(pid, "fd/1")
    venv = _venv(argv[0], folder, dict(pair.split("=", 1) for pair in pairs if "=" in pair))
    return {
        "pid": int(pid),
        "argv": words,
        "environment": variables,
        "secret_flags": secret_flags,
        "secret_variables": secret_variables,
        "common_variables": common,
        "unit": _unit(pid),
        "folder": folder,
        "log": output if output.startswith("/") and not output.startswith("/dev/") else "",
        "venv": str(venv or ""),
        "sglang": _version(venv, "sglang"),
        "torch": _version(venv, "torch"),
        "release": next((p.partition("=")[2] for p in pairs if p.startswith("GPUBOX_RELEASE=")), ""),
        "revision": _revision(argv, dict(pair.split("=", 1) for pair in pairs if "=" in pair)),
    }


def _pids() -> list[str]:
    return sorted((p.name for p in PROC.iterdir() if p.name.isdigit()), key=int)


def _words(pid: str, name: str) -> list[str]:
    try:
        return (PROC / pid / name).read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:  # it ended meanwhile
        return []


def _is_server(argv: list[str]) -> bool:
    if not argv or not os.path.basename(argv[0]).startswith("python"):  # noqa: PTH119 - a word, maybe no path
        return False
    after_m = argv[argv.index("-m") + 1] if "-m" in argv[:-1] else ""
    if after_m in {"sglang.launch_server", "vllm.entrypoints.openai.api_server"}:
        return True
    return len(argv) > 2 and argv[1].rsplit("/", 1)[-1] in {"sglang", "vllm"} and argv[2] == "serve"


def _parent(pid: str) -> str:
    try:
        return (PROC / pid / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return ""


def _unit(pid: str) -> str:
    """The service of its control group; a login session's scope is none."""
    lines = (PROC / pid / "cgroup").read_text().splitlines()
    found = [m[1] for line in lines if (m := re.search(r"/system\.slice/([^/]+\.service)", line))]
    return next((unit for unit in found if unit not in {"ssh.service", "sshd.service", "cron.service"}), "")


def _link(pid: str, name: str) -> str:
    try:
        return str((PROC / pid / name).readlink())
    except OSError:
        return ""


def _venv(program: str, folder: str, variables: dict[str, str]) -> "Path | None":
    if "/" in program:
        candidates = [Path(folder, program).parent.parent]
    else:
        path = variables.get("PATH", "").split(":")
        candidates = [Path(part).parent for part in path if part and Path(part, program).exists()]
    return next((venv for venv in candidates if (venv / "pyvenv.cfg").exists()), None)


def _revision(argv: list[str], variables: dict[str, str]) -> str:
    """The commit of the hub's model that lies in the cache; empty: the model has a path, or lies nowhere there."""
    names = [word.partition("=")[2] or after for word, after in zip(argv, [*argv[1:], ""]) if _names_model(word)]  # noqa: B905 - old Pythons
    home = variables.get("HF_HOME") or f"{variables.get('HOME', '/root')}/.cache/huggingface"
    cache = Path(variables.get("HF_HUB_CACHE") or f"{home}/hub")
    for name in names:
        ref = cache / f"models--{name.replace('/', '--')}" / "refs" / "main"
        if not name.startswith(("/", ".", "~")) and ref.is_file():
            return ref.read_text().strip()
    return ""


def _names_model(word: str) -> bool:
    return word.partition("=")[0] in {"--model", "--model-path"}


def _version(venv: "Path | None", package: str) -> str:
    found = venv.glob(f"lib/python*/site-packages/{package}-*.dist-info") if venv else ()
    return next((p.name.removesuffix(".dist-info").partition("-")[2] for p in found), "")


if __name__ == "__main__":
    print(json.dumps(servers()))
