"""A run as a record: one JSON file that says what was measured, on what, with which settings, and how it ended."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gpubox.support import files
from gpubox.support.data import Model, validated
from gpubox.support.errors import GpuboxError

SCHEMA_VERSION = 2
"""2: `warm_ups`. Records of 1 are read as they are."""
Verdict = Literal["complete", "failed", "interrupted", "cannot tell", "running"]
Values = dict[str, Any]


class Latency(Model):
    """Milliseconds; None: not recorded."""

    mean: float | None = None
    median: float | None = None
    p99: float | None = None


class CardLoad(Model):
    """One card while a row was measured; None: this reading was not to be had."""

    index: int
    power_mean_w: float | None = None
    power_max_w: float | None = None
    utilisation_percent: float | None = None
    memory_max_mib: float | None = None
    sm_clock_mhz: float | None = None
    temperature_max_c: float | None = None
    samples: int | None = None


class Row(Model):
    """One point: so many clients, each with one request in flight. Tokens, seconds; None: not recorded."""

    concurrency: int | None = Field(default=None, ge=1)
    repeat: int = 1
    seed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    prompts: int | None = None
    completed: int | None = None
    duration_s: float | None = None
    output_tok_s: float | None = Field(default=None, ge=0)
    total_tok_s: float | None = None
    requests_s: float | None = None
    ttft_ms: Latency | None = None
    tpot_ms: Latency | None = None
    itl_ms: Latency | None = None
    e2e_ms: Latency | None = None
    cards: list[CardLoad] | None = None
    """None: not measured."""
    status: Literal["complete", "partial", "failed"] = "complete"
    """`partial`: some requests did not finish; its figures are no result."""
    problem: str | None = None
    note: str | None = None


class WarmUp(Model):
    """Requests of one shape that were sent before a row of it counted. bench_serving sends one more before each row."""

    concurrency: int
    input_tokens: int
    output_tokens: int
    requests: int | None = None
    """Finished."""
    duration_s: float | None = None


class Card(Model):
    """A card as NVML describes it."""

    index: int
    name: str
    memory_mib: int | None = None
    power_limit_w: float | None = None
    compute_capability: str | None = None


class Machine(Model):
    """What it ran on. None: not recorded."""

    cards: list[Card] = Field(default_factory=list)
    cards_note: str | None = None
    """Why there are no cards here, where that was looked for."""
    driver: str | None = None
    topology: str | None = None
    python: str | None = None
    kernel: str | None = None
    cpu: str | None = None
    cores: int | None = None
    memory_mib: int | None = None
    packages: dict[str, str] = Field(default_factory=dict)


class Server(Model):
    """The model server and its settings, secrets masked. None: not recorded."""

    url: str | None = None
    model: str | None = None
    version: str | None = None
    """SGLang's."""
    argv: list[str] | None = None
    """The command line, as it was typed."""
    environment: dict[str, str] | None = None
    server_args: Values | None = None
    """What SGLang made of it: every setting, defaults resolved."""
    cap: int | None = None
    """Requests that run at once at most, as the server itself says."""
    ready_s: float | None = None
    release: str | None = None
    """Digest of the release that the service runs from."""
    profile: str | None = None
    patches: list[str] | None = None
    """Source patches in force."""


class Probe(Model):
    """One question at temperature 0."""

    when: Literal["before", "after"]
    text: str | None = None
    problem: str | None = None


class Record(Model):
    """A run."""

    schema_version: Literal[1, 2] = 2
    id: str
    label: str
    """What people call it."""
    host: str | None = None
    """The box's name in the inventory; None: no box of an inventory."""
    kind: Literal["measured", "reference", "foreign"] = "measured"
    """`reference`: shipped with gpubox, other hardware and release; `foreign`: read from other people's files."""
    source: str = ""
    """Where a reference or foreign run comes from."""
    started: str | None = None
    """UTC, ISO 8601."""
    gpubox: str | None = None
    catalogue: str | None = None
    """Digest of the catalogue of facts that judged it."""
    verdict: Verdict = "complete"
    problem: str | None = None
    server: Server = Server()
    machine: Machine = Machine()
    probes: list[Probe] = Field(default_factory=list)
    warm_ups: list[WarmUp] | None = None
    """In the order they were run, before the first row; None: not recorded."""
    rows: list[Row] = Field(default_factory=list)
    raw: list[str] = Field(default_factory=list)
    """Raw files, relative to the record."""
    notes: list[str] = Field(default_factory=list)


def load(path: Path) -> Record:
    """The record in a file. Errors: not JSON, wrong keys, made by a newer gpubox."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise GpuboxError(f"{path} cannot be read as a record: {error}") from error
    return of(value, str(path))


def of(value: Any, where: str) -> Record:
    """A record out of plain data."""
    version = value.get("schema_version") if isinstance(value, dict) else None
    if not isinstance(version, int):
        raise GpuboxError(f"{where} is no record of gpubox", "a JSON object with schema_version")
    if version > SCHEMA_VERSION:
        raise GpuboxError(f"{where} has schema version {version}", f"at most {SCHEMA_VERSION}", "update gpubox")
    return validated(Record, value, where)


def save(record: Record, path: Path) -> None:
    """Whatever happens, there is a whole record at `path`, the new one or the one before."""
    files.write(path, dumps(record))


def dumps(record: Record) -> str:
    """The record as JSON text; what was not recorded is left out."""
    return json.dumps(record.model_dump(exclude_none=True), indent=1, ensure_ascii=False) + "\n"
