"""An SGLang server's log: its settings (`server_args=`, in the shapes of several releases) and how full it ran."""

import ast
import re
from collections.abc import Iterator
from typing import Any

from gpubox.bench.record import Server
from gpubox.remote.bench import recorded

_OPENERS, _CLOSERS = "([{", ")]}"
_START = re.compile(r"server_args=(?:ServerArgs\(|\{)")
_DECODE = re.compile(r"Decode batch.*?#running-req: (\d+).*?gen throughput \(token/s\): ([\d.]+).*?#queue-req: (\d+)")
_ENUM = re.compile(r"<[\w.]+: (.*)>")
_JSON = {"true": True, "false": False, "null": None}
_POOL = re.compile(r"max_total_num_tokens=(\d+).*?max_running_requests=(\d+)")


def server(text: str) -> Server | None:
    """The settings of the last start in the log; None: the log has no `server_args=` line, or nothing in it.

    In 0.5.8 to 0.5.16 the line is the repr of a dataclass, `ServerArgs(model_path='x', ...)`, in 0.5.23 a dictionary,
    `{'model_path': 'x', ...}` (read in the wheels). Of an enum its value is taken; other values that are no Python
    literals are kept as text.
    """
    starts = list(_START.finditer(text))
    if not starts:
        return None
    body, _ = _enclosed(text, starts[-1].end())
    args = recorded.server_args(dict(_pairs(body)))
    if not args:
        return None
    pool = _POOL.search(text, starts[-1].end())
    return Server(
        model=str(args.get("served_model_name") or args.get("model_path") or "") or None,
        server_args=args,
        cap=int(pool[2]) if pool else None,
    )


def notes(text: str) -> list[str]:
    """What its decode lines tell: the fastest one, and how many requests ran and waited at most; what is missing."""
    starts = list(_START.finditer(text))
    whole = not starts or _enclosed(text, starts[-1].end())[1]
    cut = [] if whole else ["its log: the line of settings is cut off, so some are missing here"]
    seen = [(int(running), float(rate), int(queued)) for running, rate, queued in _DECODE.findall(text)]
    if not seen:
        return cut
    running, rate, queued = max(seen, key=lambda line: line[1])
    most, longest = max(line[0] for line in seen), max(line[2] for line in seen)
    return [
        *cut,
        f"its log: at best {rate:,.0f} tok/s in one decode line ({running} running, {queued} waiting)",
        f"its log: at most {most} requests ran at once, at most {longest} waited",
    ]


def _enclosed(text: str, start: int) -> tuple[str, bool]:
    """From `start` to the bracket that closes what was open there; False: it never closes, so to the line's end."""
    depth, quote, i = 1, "", start
    while i < len(text) and depth:
        char = text[i]
        if quote:
            i += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char in _OPENERS) - (char in _CLOSERS)
        i += 1
    return (text[start : i - 1], True) if not depth else (text[start:].partition("\n")[0], False)


def _pairs(body: str) -> Iterator[tuple[str, Any]]:
    for part in _split(body):
        name, mark, value = part.partition(":" if part.lstrip()[:1] in {"'", '"'} else "=")
        if mark:
            yield name.strip().strip("'\""), _value(value.strip())


def _split(body: str) -> Iterator[str]:
    """At commas outside of brackets and quotes."""
    depth, quote, begin, i = 0, "", 0, 0
    while i < len(body):
        char = body[i]
        if quote:
            i += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "," and not depth:
            yield body[begin:i]
            begin = i + 1
        else:
            depth += (char in _OPENERS) - (char in _CLOSERS)
        i += 1
    yield body[begin:]


def _value(text: str) -> Any:
    if text in _JSON:
        return _JSON[text]
    enum = _ENUM.fullmatch(text)
    try:
        return ast.literal_eval(enum[1] if enum else text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the latter two: thousands of brackets
        return text
