"""Where SGLang decides whether FlashInfer's autotune runs, and for which MoE backends.

The judgement is that of the source patch itself (gpubox.server.patches), so that catalogue and box never disagree.
"""

import ast
from typing import Literal

from gpubox.catalog.release import AutotuneGate
from gpubox.remote import patch as onbox

_GATE = onbox.GATES["flashinfer-cutlass-autotune"]
_State = Literal["open", "gated", "unknown"]
_STATES: dict[str, _State] = {onbox.UPSTREAM: "open", onbox.GATED: "gated"}


def in_source(text: str, file: str) -> AutotuneGate | None:
    """The gate in one source file; None: the file does not define it."""
    source = text.encode()
    if not _GATE.mentioned(source):
        return None
    state: _State = _STATES.get(_GATE.judge(source).state, "unknown")
    return AutotuneGate(state=state, file=file, backends=_backends(text))


def _backends(text: str) -> list[str]:
    lists = (_strings(n) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.List | ast.Tuple))
    return next((values for values in lists if _GATE.neighbour in values), [])


def _strings(node: ast.List | ast.Tuple) -> list[str]:
    return [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
