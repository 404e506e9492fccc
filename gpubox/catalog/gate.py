"""Where SGLang decides whether FlashInfer's autotune runs, and for which MoE backends.

Found by syntax tree, never by line number: the function moved twice between 0.5.9 and 0.5.15, with another list around it each
time. The one backend of interest stood in the list as a comment until 0.5.12 (sgl-project/sglang, TODO about compilation errors).
"""

import ast
import re

from gpubox.catalog.release import AutotuneGate

BACKEND = "flashinfer_cutlass"
_ANCHOR = "flashinfer_trtllm"
_FUNCTION = "should_run_flashinfer_autotune"


def in_source(text: str, file: str) -> AutotuneGate | None:
    """The gate in one source file; None: the file does not define the function."""
    if _FUNCTION not in text:
        return None
    function = next((n for n in ast.walk(ast.parse(text)) if _is_gate(n)), None)
    if not isinstance(function, ast.FunctionDef):
        return None
    lists = [n for n in ast.walk(function) if isinstance(n, ast.List | ast.Tuple | ast.Set) and _ANCHOR in _strings(n)]
    if len(lists) != 1:
        return AutotuneGate(state="unknown", file=file, function=function.name)
    return AutotuneGate(state=_state(text, lists[0]), file=file, function=function.name, backends=_strings(lists[0]))


def _is_gate(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.lstrip("_") == _FUNCTION


def _strings(node: ast.List | ast.Tuple | ast.Set) -> list[str]:
    return [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _state(text: str, node: ast.List | ast.Tuple | ast.Set) -> str:
    if BACKEND in _strings(node):
        return "open"
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    commented = [line for line in lines if re.fullmatch(rf"\s*#\s*[\"']{BACKEND}[\"'],?\s*", line)]
    return "gated" if len(commented) == 1 else "unknown"
