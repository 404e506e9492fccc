"""Source patches of the installed SGLang: read their state, apply, revert.

Runs on the box with the venv's own python; its words: `state|apply|revert NAME...`. Prints one JSON object,
patch name to what was found. Exit codes: 0 as asked, 1 refused (why: on stderr; that file untouched), 2 could not tell.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import json
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpubox.remote import files

ABSENT, GATED, PATCHED, UPSTREAM, UNKNOWN = "absent", "gated", "patched", "upstream", "unknown"
KEPT = ".gpubox-original-"


@dataclass(frozen=True)
class Found:
    """The state of one patch in one venv."""

    state: str
    """absent: no SGLang there. gated: needs the patch. patched: by us. upstream: needs none. unknown: another shape."""
    why: str
    file: str | None = None
    line: int | None = None
    """Gated: the line to uncomment, from 1."""
    stale_bytecode: bool = False
    """Compiled files of another text lie beside it: SGLang would run those if they are of the unchecked kind."""


class RefusedError(Exception):
    """The patch cannot be applied or reverted; nothing was touched."""


def main(arguments: list[str]) -> int:
    """Do one action for the patches named; returns the exit code."""
    actions: dict[str, Callable[[Path | None, str], Found]] = {"state": state, "apply": apply, "revert": revert}
    action, *names = arguments or ["(nothing)"]
    if action not in actions or not names or not set(names) <= set(GATES):
        print(f"{arguments}: expected {'|'.join(actions)} and names of {', '.join(GATES)}", file=sys.stderr)
        return 2
    answers: dict[str, Found] = {}
    try:
        package = _package()
        for name in names:
            answers[name] = actions[action](package, name)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        print(json.dumps({name: asdict(found) for name, found in answers.items()}))
    return 0


def state(package: Path | None, name: str) -> Found:
    """What is there now. `package`: the folder of the installed sglang; None: not installed."""
    if package is None:
        return Found(ABSENT, "sglang is not installed")
    gate = GATES[name]
    sources = [path for path in sorted((package / gate.below).rglob("*.py")) if gate.mentioned(path.read_bytes())]
    if len(sources) != 1:
        return Found(
            UNKNOWN, f"{gate.function} is defined in {len(sources)} files below {package / gate.below}, not in one"
        )
    found = replace(gate.judge(sources[0].read_bytes()), file=str(sources[0]))
    return replace(found, stale_bytecode=any(_stale(sources[0])))


def apply(package: Path | None, name: str) -> Found:
    """Patch what is gated; leave what is patched or open already. The original is kept beside, named by its digest."""
    found = state(package, name)
    if found.state in {ABSENT, UNKNOWN} or found.file is None:
        raise RefusedError(f"{name}: {found.state}: {found.why}; nothing was changed")
    path = Path(found.file)
    if found.state == GATED:
        original = path.read_bytes()
        patched = GATES[name].patched(original)
        kept = path.with_name(path.name + KEPT + _digest(original))
        # Beside, renamed: installers hard-link files out of their cache, and that copy must not change.
        files.write(kept, original, like=path)
        files.write(path, patched, like=path)
        _remove(other for other in _kept(path) if other != kept)
    _remove(_stale(path))
    return state(package, name)


def revert(package: Path | None, name: str) -> Found:
    """Put the original back, byte for byte; nothing to do unless patched."""
    found = state(package, name)
    if found.state != PATCHED or found.file is None:
        return found
    path = Path(found.file)
    kept = _original(path, name)
    files.write(path, kept.read_bytes(), like=path)
    _remove(_stale(path))
    _remove(_kept(path))
    return state(package, name)


@dataclass(frozen=True)
class Gate:
    """A backend that is commented out of the list in a predicate: `if backend not in [...]: return False`."""

    name: str
    below: str
    """Folder of the package that holds the predicate; it moved between files there."""
    function: str
    """Regular expression of the predicate's name."""
    neighbour: str
    """An element that shows which list is meant."""
    backend: str
    """The element that is commented out."""
    revision: str
    """64 hexadecimal digits that name what the patch makes of a file: a new one whenever that changes, and only then,
    because every venv with the patch is built anew for it."""

    def mentioned(self, source: bytes) -> bool:
        """Whether the predicate is defined in this file."""
        return re.search(rf"\bdef {self.function}\b".encode(), source) is not None

    def judge(self, source: bytes) -> Found:
        """State of one file that defines the predicate. Pure; anything not seen in a release is unknown."""
        try:
            text = source.decode()
            functions = [node for node in ast.walk(ast.parse(text)) if self._is_predicate(node)]
        except (SyntaxError, ValueError) as error:
            return Found(UNKNOWN, f"not Python that this interpreter reads: {error}")
        if len(functions) != 1:
            return Found(UNKNOWN, f"{len(functions)} definitions of the predicate, not one")
        return self._judge_function(text, functions[0])

    def patched(self, source: bytes) -> bytes:
        """The patched text of a gated file. Errors: the result does not compile or is not what was meant."""
        found = self.judge(source)
        if found.state != GATED or found.line is None:
            raise RefusedError(f"{self.name}: {found.state}: {found.why}; nothing was changed")
        lines = source.split(b"\n")
        old = lines[found.line - 1]
        indent, end = old[: old.index(b"#")], b"\r" if old.endswith(b"\r") else b""
        lines[found.line - 1] = indent + f'"{self.backend}",  {self._mark}'.encode() + end
        result = b"\n".join(lines)
        try:
            compile(result, self.name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise RefusedError(
                f"{self.name}: the patched file does not compile: {error}; nothing was changed"
            ) from error
        if (after := self.judge(result)).state != PATCHED:
            raise RefusedError(f"{self.name}: patching gave {after.state} ({after.why}); nothing was changed")
        return result

    @property
    def _mark(self) -> str:
        return f"# gpubox: {self.name}"

    def _is_predicate(self, node: ast.AST) -> bool:
        return isinstance(node, ast.FunctionDef) and re.fullmatch(self.function, node.name) is not None

    def _judge_function(self, text: str, function: ast.AST) -> Found:
        lists = [node for node in ast.walk(function) if self.neighbour in (_strings(node) or [])]
        if len(lists) != 1:
            return Found(UNKNOWN, f"{len(lists)} lists with {self.neighbour} in the predicate, not one")
        elements = _strings(lists[0]) or []
        uses = [node for node in ast.walk(function) if isinstance(node, ast.Constant) and node.value == self.backend]
        if len(uses) != elements.count(self.backend):
            return Found(UNKNOWN, f"{self.backend} also stands outside the list")
        sense = _sense(function, lists[0])
        if sense is None:
            return Found(UNKNOWN, "the list decides in a way that no known release has")
        comments = list(_comments(text, lists[0]))
        if self.backend in elements:
            ours = self._mark in (comment for _, comment in comments)
            return Found(PATCHED, "patched by gpubox") if ours else Found(UPSTREAM, "already open in the source")
        lines = [row for row, comment in comments if re.fullmatch(rf'#\s*"{self.backend}",', comment)]
        if sense != "not in" or len(lines) != 1:
            return Found(UNKNOWN, f"{self.backend} is not in the list, and not commented out of it either")
        return Found(GATED, f"{self.backend} is commented out of the list", line=lines[0])


# Tuned FlashInfer kernels for NVFP4 experts stay unused while the gate is closed: commented out in 0.5.8 to 0.5.12,
# open from 0.5.13 (https://github.com/sgl-project/sglang, model_executor/model_runner.py and its successors).
GATES = {
    gate.name: gate
    for gate in [
        Gate(
            name="flashinfer-cutlass-autotune",
            below="srt/model_executor",
            function="_?should_run_flashinfer_autotune",
            neighbour="flashinfer_trtllm",
            backend="flashinfer_cutlass",
            revision="f820a199d9f1b208b0230f6f77673c37f350a4b113c8a3a5e2f2e1e881e316ff",
        )
    ]
}


def _package() -> Path | None:
    spec = importlib.util.find_spec("sglang")  # finds a top-level package without importing it
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def _strings(node: ast.AST) -> list[str] | None:
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return None
    return [
        element.value for element in node.elts if isinstance(element, ast.Constant) and isinstance(element.value, str)
    ]


def _sense(function: ast.AST, wanted: ast.AST) -> str | None:
    """`not in`: outside the list returns False. `in`: being inside is stored under a name. Else None."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and _compares(node.test, ast.NotIn, wanted) and _returns_false(node):
            return "not in"
        if isinstance(node, ast.Assign) and _compares(node.value, ast.In, wanted):
            return "in"
    return None


def _compares(node: ast.expr, operator: type[ast.cmpop], wanted: ast.AST) -> bool:
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and len(node.ops) == 1
        and isinstance(node.ops[0], operator)
        and node.comparators[0] is wanted
    )


def _returns_false(node: ast.If) -> bool:
    if len(node.body) != 1 or node.orelse:
        return False
    (only,) = node.body
    return isinstance(only, ast.Return) and isinstance(only.value, ast.Constant) and only.value.value is False


def _comments(text: str, node: ast.AST) -> Iterator[tuple[int, str]]:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and first <= token.start[0] <= last:
            yield token.start[0], token.string.rstrip()


def _original(path: Path, name: str) -> Path:
    for kept in _kept(path):
        original = kept.read_bytes()
        if kept.name.endswith(KEPT + _digest(original)) and GATES[name].patched(original) == path.read_bytes():
            return kept
    raise RefusedError(f"{name}: no original beside {path} that the patched file was made from; reinstall the package")


def _kept(path: Path) -> list[Path]:
    return sorted(path.parent.glob(path.name + KEPT + "*"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _stale(path: Path) -> Iterator[Path]:
    """Compiled files that are not of this text. Unchecked ones would be run for ever (PEP 552)."""
    content, about = path.read_bytes(), path.stat()
    dated = bytes(4) + int(about.st_mtime).to_bytes(4, "little") + (about.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    hashed = importlib.util.source_hash(content)
    for compiled in sorted((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")):
        head = compiled.read_bytes()[4:16]
        if head != dated and (head[:1] not in {b"\x01", b"\x03"} or head[4:12] != hashed):
            yield compiled


def _remove(paths: Iterator[Path] | list[Path]) -> None:
    for path in list(paths):
        path.unlink(missing_ok=True)
