"""The state of the step `model`: which files of a model lie at a path, and whether a made one is whole. One command."""

from dataclasses import dataclass, field

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from gpubox.facts.answers import Fact, checked, script

MARKER = ".gpubox-made"
"""In a model that gpubox made: the recipe's digest, then a line of `sha256sum` for each file."""

_NO = 3
"""Exit code of a look that says no; sha256sum's own is 1."""


@dataclass(frozen=True)
class ModelState:
    """What lies at the path of a model."""

    exists: bool
    lacks: list[str] = field(default_factory=list)
    """Files that SGLang needs and that are not there or empty: of a folder, config.json and every file of weights."""
    recipe: str = ""
    """Digest of the recipe that it was made with; empty: gpubox did not make it."""
    damaged: bool = False
    """gpubox made it, and a file is not as it was then."""


class Model(Fact[ModelState]):
    """ModelState of `path`. Weights are looked for, not read: they may be hundreds of GB; only a made model is read."""

    @override
    def command(self, path: str) -> str:
        marker = QuoteString(f"{path}/{MARKER}")
        index = QuoteString(f"{path}/model.safetensors.index.json")
        enter = StringCommand("test ! -d", QuoteString(path), "|| { cd", QuoteString(path))
        return script(
            {
                "exists": StringCommand("test -e", QuoteString(path), f"|| exit {_NO}"),
                "folder": StringCommand("test -d", QuoteString(path), f"|| exit {_NO}"),
                "files": StringCommand(enter, "&& find -L . -maxdepth 1 -type f -size +0c -printf '%P\\n'; }"),
                "index": StringCommand("test ! -f", index, '|| grep -o \'"[^"/]*[.]safetensors"\'', index),
                "recipe": StringCommand("test ! -f", marker, "|| head -n 1", marker),
                "sums": StringCommand(
                    "test ! -f", marker, "||", enter, "&& tail -n +2", MARKER, "| sha256sum --check --status; }"
                ),
            }
        )

    @override
    def process(self, output: list[str]) -> ModelState:
        found = checked(output, exists=_NO, folder=_NO, sums=1)
        if found["exists"].rc == _NO or found["folder"].rc == _NO:
            return ModelState(exists=found["exists"].rc == 0)  # one file, as GGUF, has nothing to lack
        return ModelState(
            exists=True,
            lacks=_lacking(set(found["files"].lines), {line.strip('"') for line in found["index"].lines}),
            recipe="".join(found["recipe"].lines).strip(),
            damaged=found["sums"].rc != 0,
        )


def _lacking(files: set[str], indexed: set[str]) -> list[str]:
    lacking = {"config.json", *indexed} - files
    if not indexed and not any(name.endswith((".safetensors", ".bin", ".pt", ".gguf")) for name in files):
        lacking.add("*.safetensors")
    return sorted(lacking)
