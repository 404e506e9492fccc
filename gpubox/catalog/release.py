"""SGLang releases as the catalogue holds them: machine-made from the real wheels, one JSON file each."""

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from gpubox.support.data import Model
from gpubox.support.errors import GpuboxError
from gpubox.support.versions import key

FOLDER = Path(__file__).parent / "releases"

Value = bool | int | float | str | list[str | int | float] | None


class Flag(Model):
    """One command-line flag of one release."""

    names: list[str] = Field(min_length=1)
    """All its spellings without dashes; the first is the one that SGLang's own help lists first."""
    type: Literal["flag", "int", "float", "str", "json", "human-int"] = "str"
    """`flag` takes no value; `human-int` also takes 4k or 1.5M; `json` a JSON text."""
    nargs: Literal["+", "*", "?"] | None = None
    """As argparse has it; None: one value (none for `flag`)."""
    choices: list[str | int] | None = None
    """Accepted values; None: any of the type, or a list that only running the code would tell (named in `open`)."""
    default: Value = None
    required: bool = False
    deprecated: bool = False
    """Still accepted, with a warning."""
    removed: bool = False
    """Registered only to stop the launch with a message."""
    replacement: str | None = None
    """What to write instead, as SGLang says it."""


class AutotuneGate(Model):
    """Whether FlashInfer's autotune runs for `flashinfer_cutlass`: a list in SGLang's source decides."""

    state: Literal["open", "gated", "absent", "unknown"]
    """open: in the list; gated: in it as a comment; absent: no such function; unknown: another shape, hands off."""
    file: str | None = None
    """In the wheel."""
    backends: list[str] = Field(default_factory=list)
    """MoE backends that are autotuned."""


class Release(Model):
    """What a release of SGLang accepts and wants."""

    sglang: str
    wheel: str
    """File name of the wheel that was read."""
    sha256: str
    """Of that wheel."""
    pins: dict[str, str]
    """Package -> version specifier, as its metadata says."""
    kernel_wheel: Literal["sgl-kernel", "sglang-kernel"]
    autotune: AutotuneGate
    open: list[str] = Field(default_factory=list)
    """What could not be read without running the code."""
    architectures: list[str]
    """Model classes that it can serve."""
    environment: list[str]
    """SGLANG_* and SGL_* variables that its source names."""
    flags: dict[str, Flag]

    def pin(self, package: str) -> str | None:
        """The exact version of a pinned package; None: not pinned exactly."""
        specifier = self.pins.get(package, "")
        return specifier[2:] if specifier.startswith("==") else None

    def find(self, name: str) -> Flag | None:
        """The flag that SGLang takes `name` for: a spelling, or an abbreviation of one only, as argparse does."""
        if name in self._spellings:
            return self._spellings[name]
        near = self.abbreviated(name)
        return self._spellings[near[0]] if len(near) == 1 else None

    def abbreviated(self, name: str) -> list[str]:
        """All spellings that `name` abbreviates."""
        return [spelling for spelling in self._spellings if name and spelling.startswith(name)]

    @cached_property
    def _spellings(self) -> dict[str, Flag]:
        return {name: flag for flag in self.flags.values() for name in flag.names}

    @property
    def spellings(self) -> list[str]:
        """All names of all flags."""
        return list(self._spellings)


def versions() -> list[str]:
    """All releases of the catalogue, oldest first."""
    return sorted((path.stem for path in FOLDER.glob("*.json")), key=key)


@cache
def load(version: str) -> Release:
    """A release. Error: not in the catalogue (the known ones are listed)."""
    path = FOLDER / f"{version}.json"
    if version not in versions():
        todo = f"gpubox catalog extract {version}, and review the new file"
        raise GpuboxError(f"SGLang {version} is not in the catalogue", f"one of: {', '.join(versions())}", todo)
    try:
        return Release.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise GpuboxError(f"{path} is damaged: {error}", "", f"gpubox catalog extract {version}") from error


def dumped(release: Release) -> str:
    """The file's text: JSON with one flag a line, so that a new release reviews as a diff of flags.

    JSON and not YAML, because a program writes and reads it: 4 ms for 500 flags, against 60 ms (libyaml) to 600 ms.
    """
    whole = release.model_dump(exclude_defaults=True, exclude={"flags"})
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in whole.items()]
    flags = [
        f"  {json.dumps(name)}: {json.dumps(flag.model_dump(exclude_defaults=True))}"
        for name, flag in sorted(release.flags.items())
    ]
    return "\n".join(["{", *lines, ' "flags": {', ",\n".join(flags), " }", "}", ""])
