"""Why a container is down: the last lines of its first process, which lie in its own journal (last_words.yaml)."""

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpubox.hypervisor.kinds import Kind
from gpubox.support import known_texts
from gpubox.support.data import Model, validated
from gpubox.support.known_texts import KnownText

_LINES = 12
_NO_JOURNAL = "no-journal-is-kept-in-the-container"
_VOLUME = r"s/^rootfs: *\([^,]*\).*/\1/p"
_JOURNAL = "journalctl -q --no-pager -o short-iso"


class Table(Model):
    """The whole file."""

    lines: list[KnownText]


@cache
def table() -> Table:
    """The table of last_words.yaml."""
    path = Path(__file__).with_suffix(".yaml")
    raw: dict[str, Any] = {"lines": yaml.safe_load(path.read_text())}
    return validated(Table, raw, path.name)


def question(kind: Kind) -> str:
    """Shell text that prints the last lines of the container's first process, and the hypervisor's of its end."""
    name = shlex.quote(kind.container)
    # dir:PATH, overlay:LOWER:UPPER, or the path alone: what the container wrote lies in the last
    root = {
        "lxc": f"r=$(/usr/bin/lxc-info -n {name} -H -c lxc.rootfs.path); r=${{r##*:}}",
        "proxmox": f"r=$(/usr/sbin/pvesm path $(sed -n '{_VOLUME}' {shlex.quote(kind.config_path)} | head -n1))",
        "incus": f"r=/var/lib/incus/containers/{name}/rootfs",
    }[kind.name]
    above = {
        "lxc": f"tail -n 3 /var/log/lxc/{name}.log",
        "proxmox": f"{_JOURNAL} -n 5 -u pve-container@{name}.service",
        "incus": f"/usr/bin/incus info {name} --show-log | tail -n 3",
    }[kind.name]
    folder = '"$r/var/log/journal"'
    inside = f"{_JOURNAL} -D {folder} -n {_LINES} _PID=1"
    return f"{above}; {root}; if [ -d {folder} ]; then {inside}; else echo {_NO_JOURNAL}; fi"


def why(text: str) -> str:
    """Why it is down, in one line; what is not known is shown as it stands; empty: nothing was said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    for line in reversed(lines):
        known = known_texts.first(table().lines, line)
        if known is not None:
            return f"{' '.join(known.cause.split())} ({line}): {' '.join(known.cure.split())}"
    return f"gpubox does not know why; its last words: {lines[-1]}"
