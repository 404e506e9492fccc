"""Settings in one form, whether they were typed, or reported by the server."""

from typing import Any

from gpubox.bench.record import Record
from gpubox.catalog import release
from gpubox.catalog.release import Flag

CAP = "max-running-requests"

_LONG = {
    "tp": "tp-size",
    "tensor-parallel-size": "tp-size",
    "ep": "ep-size",
    "dp": "dp-size",
    "pp": "pp-size",
    "model": "model-path",
    "mem-fraction": "mem-fraction-static",
    "fp8-gemm-runner-backend": "fp8-gemm-backend",
    "fp4-gemm-runner-backend": "fp4-gemm-backend",
}
"""Short names, and SGLang's inner ones where they are not the flag's."""
_IDLE = {
    "api-key",
    "dist-init-addr",
    "host",
    "log-level",
    "log-level-http",
    "model-path",
    "nccl-port",
    "port",
    "random-seed",
    "served-model-name",
    "tokenizer-path",
    "version",
    "weight-version",
}
"""Settings that say where and under which name, not how, the model is served; the model is compared on its own."""


def typed(argv: list[str]) -> dict[str, str]:
    """What was typed of that which says how the model is served."""
    return {flag: text for flag, text in words_of(argv).items() if flag not in _IDLE}


def words_of(argv: list[str]) -> dict[str, str]:
    """Flag (long name, no dashes) -> value as text; a bare flag is `true`, several values stand with spaces between."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in argv[_first_flag(argv) :]:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = _LONG.get(name, name)
            found[name] = [value] if equals else []
        elif name:
            found[name].append(word)
    return {flag: " ".join(values) if values else "true" for flag, values in found.items()}


def reported(server_args: dict[str, Any]) -> dict[str, str]:
    """The same form out of SGLang's own account; what is off, empty or not set is left out."""
    words = {key.replace("_", "-"): _text(value) for key, value in server_args.items()}
    named = {_LONG.get(word, word): text for word, text in words.items()}
    return {flag: text for flag, text in named.items() if text and flag not in _IDLE}


def told(server_args: dict[str, Any]) -> set[str]:
    """Of SGLang's own account, what somebody must have set: not its default, and nothing that it works out itself.

    It works out what has no default, or the default `auto`, except for the cap of running requests (seen in 0.5.23).
    """
    defaults = release.load(release.versions()[-1])
    known = {flag: (text, defaults.find(flag)) for flag, text in reported(server_args).items()}
    return {flag for flag, (text, spec) in known.items() if spec and (flag == CAP or _is_own(spec, text))}


def _is_own(spec: Flag, text: str) -> bool:
    default = _text(spec.default)
    return text != default and default != "auto" and (spec.type == "flag" or spec.default is not None)


def of(record: Record, wanted: set[str] | None = None) -> dict[str, str] | None:
    """The settings of a record as typed, else as reported (of those only `wanted`); None: neither is known."""
    if record.server.argv:
        return typed(record.server.argv)
    if record.server.server_args is None:
        return None
    found = reported(record.server.server_args)
    return found if wanted is None else {flag: text for flag, text in found.items() if flag in wanted}


def _first_flag(argv: list[str]) -> int:
    return argv.index("sglang.launch_server") + 1 if "sglang.launch_server" in argv else 0


def _text(value: Any) -> str:
    if value is None or value is False or value == [] or value == "":
        return ""
    if value is True:
        return "true"
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value)
