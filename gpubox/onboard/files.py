"""New files for people's own hands: shown as a diff, asked before, written whole, never over what is there."""

import ast
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from gpubox import inventory
from gpubox.remote import secrets
from gpubox.support import files
from gpubox.support.errors import GpuboxError
from gpubox.support.templates import render

_WIDTH = 110
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True)
class Change:
    """A file and its text to be."""

    path: Path
    text: str
    mode: int = 0o644
    secret: bool = False
    """Never shown."""

    @property
    def before(self) -> str:
        """The text that is there; empty: no file."""
        return self.path.read_text() if self.path.is_file() else ""


def diff(change: Change, console: Console) -> None:
    """Print what would change, as a unified diff; of a secret file only its name."""
    if change.secret:
        console.print(f"{escape(str(change.path))}: a secret, mode {change.mode:o}; not shown", highlight=False)
        return
    before, after = change.before.splitlines(), change.text.splitlines()
    old = str(change.path) if change.before else "/dev/null"
    for line in difflib.unified_diff(before, after, old, str(change.path), lineterm=""):
        style = _STYLES.get(line[:1], "")
        shown = escape(secrets.text(line))
        console.print(f"[{style}]{shown}[/]" if style else shown, highlight=False, soft_wrap=True)


def write(change: Change) -> None:
    """Write it whole; its folder is made. Error: it cannot be written."""
    files.make_folder(change.path.parent, 0o700 if change.secret else 0o755)
    files.write(change.path, change.text, change.mode)


def inventory_with(
    path: Path, box: tuple[str, Mapping[str, Any]], hypervisor: tuple[str, Mapping[str, Any]] | None, title: str
) -> Change | None:
    """The inventory at `path` with these hosts in it; a new file, or lines more in the lists of an existing one, whose
    comments and values stay. None: all of them stand there already.

    Error: its lists are not written as lists over several lines.
    """
    if not path.exists():
        entries = {"box": _entry(*box), "hypervisor": _entry(*hypervisor) if hypervisor else ""}
        return Change(path, render("inventory.py.j2", title=title, **entries))
    known = inventory.read(path)
    text = before = path.read_text()
    if hypervisor and hypervisor[0] not in known.hypervisors:
        text = _inserted(text, inventory.HYPERVISORS, _entry(*hypervisor), path)
    if box[0] not in known.boxes:
        text = _inserted(text, inventory.BOXES, _entry(*box), path)
    return None if text == before else Change(path, text)


def known(path: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Address -> name of the boxes, and of the hypervisors, that an inventory has; nothing, where there is none."""
    if path is None or not path.exists():
        return {}, {}
    found = inventory.read(path)
    above = {str(one.connection.get("ssh_hostname", name)): name for name, one in found.hypervisors.items()}
    return {box.address: name for name, box in found.boxes.items()}, above


def literal(value: object, indent: int = 0) -> str:
    """A value as Python source in the style of the inventories: double quotes, one line where it fits."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, Mapping | list):
        return repr(value)
    parts = (
        [f"{json.dumps(key)}: {literal(item, indent + 4)}" for key, item in value.items()]
        if isinstance(value, Mapping)
        else [literal(item, indent + 4) for item in value]
    )
    opened, closed = "{}" if isinstance(value, Mapping) else "[]"
    flat = f"{opened}{', '.join(parts)}{closed}"
    if len(flat) + indent < _WIDTH and "\n" not in flat and len(parts) < 6:
        return flat
    inner = "".join(f"{' ' * (indent + 4)}{part},\n" for part in parts)
    return f"{opened}\n{inner}{' ' * indent}{closed}"


def _entry(name: str, data: Mapping[str, Any]) -> str:
    """`("name", {...}),` as it stands in a list of hosts, indented by four."""
    flat = f"    ({json.dumps(name)}, {literal(dict(data), 4)}),"
    if "\n" not in flat and len(flat) < _WIDTH:
        return flat
    return f"    (\n        {json.dumps(name)},\n        {literal(dict(data), 8)},\n    ),"


def _inserted(text: str, group: str, entry: str, path: Path) -> str:
    """The text with the entry as the last of the group's list; a group that is not there is put before `checked`."""
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        names = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
        if group in names and isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            end = node.value.end_lineno or 0
            if end == node.value.lineno or lines[end - 1].strip() != "]":
                raise GpuboxError(f"{path}: {group} is not a list over several lines", "one", f"add by hand:\n{entry}")
            return "".join([*lines[: end - 1], f"{entry}\n", *lines[end - 1 :]])
        if group in names:
            raise GpuboxError(f"{path}: {group} is not a plain list", "one", f"add by hand:\n{entry}")
    last = next((i for i, line in enumerate(lines) if line.startswith("checked(")), len(lines))
    return "".join([*lines[:last], f"{group} = [\n{entry}\n]\n\n", *lines[last:]])
