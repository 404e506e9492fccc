"""Profiles: what to serve and how. One YAML file each, in SGLang's own flag names."""

import difflib
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gpubox.support import paths
from gpubox.support.data import Model, named, read_yaml
from gpubox.support.errors import GpuboxError

FlagValue = bool | int | float | str | list[str | int | float] | None
LimitName = Literal[
    "CPU",
    "FSIZE",
    "DATA",
    "STACK",
    "CORE",
    "RSS",
    "NPROC",
    "NOFILE",
    "MEMLOCK",
    "AS",
    "LOCKS",
    "SIGPENDING",
    "MSGQUEUE",
    "NICE",
    "RTPRIO",
    "RTTIME",
]
"""Of systemd.exec(5), without `Limit`."""


Limit = Annotated[str, Field(pattern=r"^(infinity|[0-9]+)(:(infinity|[0-9]+))?$")]
"""`soft:hard`, or one for both."""


_NUMBERS = r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$"
"""Single numbers and ranges, as the kernel prints a list of processors."""


class ModelWish(Model):
    """The model that the profile serves; its path or hub name stands in the flags, as SGLang takes it."""

    catalog: str | None = None
    """Key of the model in gpubox/catalog/models; None: unknown to the catalogue, memory cannot be computed."""
    revision: str | None = None
    """Commit or tag on the hub; None: what the local path holds."""
    make: Literal["tiny-chat"] | None = None
    """Make the model on the spot: `tiny-chat` trains a tiny Qwen2 for seconds on three questions (practice machine)."""


class Cards(Model):
    """The cards that the profile is for: what is computed before any host is touched, and compared with the host's."""

    model: str
    """Key of a card in gpubox/catalog/cards.yaml."""
    count: int = Field(ge=1)
    """How many of them the server uses."""


class KnownAnswer(Model):
    """A question whose answer is known at temperature 0: what readiness compares with."""

    prompt: str
    """As a user would ask it."""
    answer: str
    """The whole answer; white space around it does not count."""


class Process(Model):
    """How systemd runs the server, where that differs from a service's default. Nothing given: nothing is written."""

    cpus: str | None = Field(default=None, pattern=_NUMBERS)
    """Processors that it may use, as `0-31,64-95` (taskset, numactl -C): CPUAffinity=."""
    numa_policy: Literal["default", "preferred", "bind", "interleave", "local"] | None = None
    """Where its memory comes from (numactl): NUMAPolicy=."""
    numa_nodes: str | None = Field(default=None, pattern=_NUMBERS)
    """NUMA nodes of that policy, as `0` or `0-1`: NUMAMask=."""
    nice: int | None = Field(default=None, ge=-20, le=19)
    """Nice=; the smaller, the more processor time."""
    oom_score_adjust: int | None = Field(default=None, ge=-1000, le=1000)
    """OOMScoreAdjust=; the smaller, the later the kernel kills it for want of memory."""
    cpu_scheduling: Literal["batch", "idle", "fifo", "rr"] | None = None
    """CPUSchedulingPolicy= (chrt)."""
    cpu_priority: int | None = Field(default=None, ge=1, le=99)
    """CPUSchedulingPriority= of fifo and rr."""
    io_class: Literal["realtime", "best-effort", "idle"] | None = None
    """IOSchedulingClass= (ionice)."""
    io_priority: int | None = Field(default=None, ge=0, le=7)
    """IOSchedulingPriority=, the smaller the sooner."""
    limits: dict[LimitName, Limit] = Field(default_factory=dict)
    """Resource limits by systemd's names without `Limit`, as `CORE: infinity`; `soft:hard` where they differ. NOFILE is
    1048576 and MEMLOCK infinity without it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """What systemd takes only together."""
        needs_nodes = self.numa_policy in {"preferred", "bind", "interleave"}
        if needs_nodes != (self.numa_nodes is not None):
            raise ValueError("numa_policy preferred, bind or interleave and numa_nodes: both or neither")
        if (self.cpu_scheduling in {"fifo", "rr"}) != (self.cpu_priority is not None):
            raise ValueError("cpu_scheduling fifo or rr and cpu_priority: both or neither")
        return self


class AdoptedFrom(Model):
    """The running server that the profile was made of. While its flags and environment are the ones that were seen, and
    the stack has that release, a rule that says that it cannot start is refuted by what was seen."""

    sglang: str
    """Release that ran; empty: another one than any, or changed sources."""
    settings: str = Field(pattern=r"^[0-9a-f]{12}$")
    """Digest of flags, environment and the interpreter's arguments as they were seen."""


class Reason(Model):
    """Why a setting is what it is."""

    setting: str
    """A flag or environment variable of this profile, or a word for several."""
    why: str
    """What it does here, or what happens without it."""
    source: str
    """Upstream issue or page, documentation, recorded deployment, or measurement."""


class Profile(Model):
    """One model server's settings."""

    name: str
    """Path below profiles/ without .yaml; not written in the file."""
    summary: str
    """One line for lists."""
    stack: str
    """Name of the stack (stacks/NAME) that the profile is pinned to."""
    purpose: Literal["throughput", "latency", "practice"]
    """What it is tuned for; some rules depend on it."""
    status: Literal["current", "history"] = "current"
    """`history`: a recorded deployment, kept to be compared with, not recommended."""
    extends: str | None = None
    """Another profile whose keys stand unless given here; `flags` and `environment` merge by key,
    `reasons` by setting. One level deep."""
    model: ModelWish = ModelWish()
    cards: Cards | None = None
    """None: a profile for CPU, or for cards that nobody named: then nothing about cards can be checked early."""
    runs_on: list[Literal["bare", "lxc", "vm"]] = Field(default_factory=list)
    """Where its settings for communication between cards are right; empty: anywhere."""
    exposure: Literal["private-network"] | None = None
    """`private-network`: nobody else reaches the address that `host` binds, so a missing API key is fine."""
    flags: dict[str, FlagValue]
    """SGLang's flags without dashes, in order. true: a bare flag; false or null: left out; a list: several values."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment of the service. CUDA_HOME and PATH come from the stack."""
    python_args: list[str] = Field(default_factory=list)
    """Arguments of the interpreter itself, as `-u`."""
    process: Process = Process()
    """Processors, memory nodes, priorities and limits of the server; a change of it restarts the server."""
    adopted: AdoptedFrom | None = None
    """Written by `gpubox onboard` of a server that ran; None: people wrote the profile."""
    known_answer: KnownAnswer | None = None
    start_timeout_s: int = Field(default=1800, gt=0)
    """Seconds from start to the first good answer (8 x 96 GB cards load for 7-8 minutes: recorded)."""
    stop_timeout_s: int = Field(default=60, gt=0)
    """Seconds that the server gets to stop before it is killed."""
    required_overrides: list[str] = Field(default_factory=list)
    """Rules that this profile is known to break; a box that uses it must override them by name, with a reason."""
    reasons: list[Reason] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    """What else is known of it: measurements, what is wrong with a recorded one."""

    @property
    def port(self) -> int:
        """The TCP port that the server listens on (SGLang's default: 30000). Error: what is given is no port."""
        given = str(self.flags.get("port") or 30000)
        if not given.isdecimal() or not 0 < int(given) < 2**16:
            raise GpuboxError(f"profile {self.name}: port is {given}", "a number from 1 to 65535")
        return int(given)

    @property
    def model_path(self) -> str:
        """The local path or hub name that SGLang gets as its model."""
        return str(self.flags.get("model-path") or self.flags.get("model") or "")


def settings_digest(flags: Mapping[str, FlagValue], environment: Mapping[str, str], python_args: Sequence[str]) -> str:
    """What AdoptedFrom.settings compares; the order of the flags does not count."""
    told = {name: value for name, value in flags.items() if value is not None and value is not False}
    text = json.dumps([told, dict(environment), list(python_args)], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:12]


def names() -> list[str]:
    """All profiles, the project's and the shipped ones, sorted."""
    found: set[str] = set()
    for base in paths.profile_folders():
        found.update(path.relative_to(base).with_suffix("").as_posix() for path in base.rglob("*.yaml"))
    return sorted(found)


def origin(name: str) -> str:
    """Whose profile it is: `yours`, `yours, in place of the shipped one`, or `shipped`."""
    there = [path for path in _candidates(name) if path.is_file()]
    if not there or paths.is_shipped(there[0]):
        return "shipped"
    return "yours" if len(there) == 1 else "yours, in place of the shipped one"


def load(name: str) -> Profile:
    """The profile `name`, with what it extends merged in. Errors: unknown name, wrong keys, two levels."""
    value = _read(name)
    parent_name = value.get("extends")
    if parent_name is None:
        return _checked(name, value)
    if parent_name == name:
        raise GpuboxError(f"{_path(name)} extends itself", "the name of another profile", "give it a name of its own")
    parent = _read(str(parent_name))
    if "extends" in parent:
        raise GpuboxError(
            f"profile {name} extends {parent_name}, which extends {parent['extends']}",
            "inheritance one level deep",
            f"let {name} extend {parent['extends']}, or write the keys out",
        )
    _checked(str(parent_name), parent)  # its mistakes are told of its own file
    return _checked(name, _merge(parent, value))


def _read(name: str) -> dict[str, Any]:
    known = names()
    if name not in known:
        where = " or ".join(str(folder) for folder in paths.profile_folders())
        near = difflib.get_close_matches(name, known, 3, 0.4)
        raise GpuboxError(
            f"no profile named {name!r} below {where}",
            f"one of: {', '.join(known) or 'none there'}",
            f"did you mean {' or '.join(near)}?" if near else "",
        )
    return read_yaml(_path(name))


def _candidates(name: str) -> list[Path]:
    return [base / f"{name}.yaml" for base in paths.profile_folders()]


def _path(name: str) -> Path:
    """The file of a profile: the project's own come before the shipped ones."""
    files = _candidates(name)
    return next((file for file in files if file.is_file()), files[0])


def _merge(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    merged = {**parent, **child}
    for key in ("flags", "environment"):
        both = parent.get(key, {}), child.get(key, {})
        if all(isinstance(part, dict) for part in both):
            merged[key] = {**both[0], **both[1]}
    reasons = child.get("reasons", [])
    if not isinstance(reasons, list):
        return merged
    own = {_setting(reason) for reason in reasons}
    inherited = [reason for reason in parent.get("reasons", []) if _setting(reason) not in own]
    return {**merged, "reasons": [*inherited, *reasons]}


def _setting(reason: Any) -> Any:
    return reason.get("setting") if isinstance(reason, dict) else None


def _checked(name: str, value: dict[str, Any]) -> Profile:
    return named(Profile, name, value, _path(name))
