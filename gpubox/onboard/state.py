"""What a look at a machine found. What is absent is None or empty, never a guess."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpubox.driver.kernel_log import KernelLog
from gpubox.driver.kernel_log import recovery as recovery_asked
from gpubox.hypervisor.bars import Bars
from gpubox.hypervisor.bus import Slot
from gpubox.hypervisor.nodes import Node
from gpubox.hypervisor.secure_boot import SecureBoot
from gpubox.nccl.place import Judgement
from gpubox.nccl.topology import Matrix
from gpubox.rules.facts import BoxFacts, CardFact


@dataclass(frozen=True)
class Card:
    """One card as nvidia-smi lists it."""

    index: int
    uuid: str
    name: str
    """Empty: nvidia-smi does not tell it."""
    compute_capability: str | None
    memory_mib: int | None
    """Of its own; None: not known, or it has none of its own (`shares_memory`)."""
    power_limit_w: float | None
    pci: str
    """As 0000:c1:00.0."""
    pcie_generation: tuple[int, int] | None
    """Highest and current; an idle card lowers the current one."""
    pcie_width: tuple[int, int] | None
    """Highest and current number of lanes."""
    numa: int | None
    shares_memory: bool = False
    """It uses the processor's memory (GB10 and its like)."""
    temperature_c: float | None = None
    unknown: tuple[str, ...] = ()
    """Values that nvidia-smi gives with a word that gpubox does not know, as `power.limit [Word]`."""


@dataclass(frozen=True)
class BrokenCard:
    """A card that the driver lists and that does not answer. Nothing else is known of it."""

    index: int | None
    """Its place in nvidia-smi's list; None: it is not in it."""
    pci: str
    """Empty: not known."""
    said: str
    """What nvidia-smi says of it."""

    @property
    def label(self) -> str:
        """For people: `card 2 (0000:41:00.0)`."""
        number = "" if self.index is None else f" {self.index}"
        return f"card{number}" + (f" ({self.pci})" if self.pci else "")


@dataclass(frozen=True)
class Gpus:
    """Driver and cards as one machine sees them."""

    cards: list[Card]
    """Those that answer."""
    trouble: str
    """Why nvidia-smi lists no cards, in its own words; empty: it did."""
    pci: list[str]
    """NVIDIA display devices on the PCI bus as `ADDRESS DRIVER`, whoever drives them."""
    driver: str | None
    """Version of the loaded kernel module; None: none is loaded."""
    licence: str | None
    """As modinfo says it of the module; inside a container told by the module's own version text."""
    on_disk: str | None
    """Version of the module that a load would bring now; None: modinfo knows none, as in a container."""
    reboot_for: list[str]
    """Packages for which the distribution asks for a reboot."""
    answers: str
    """Why /dev/nvidiactl cannot be opened; empty: it can."""
    stand_in: bool
    """nvidia-smi is the practice machine's stand-in."""
    links: Matrix | None
    p2p: Matrix | None
    nodes: dict[str, Node]
    proc_devices: str
    broken: list[BrokenCard] = field(default_factory=list)
    """Those that the driver lists and that do not answer."""
    slots: list[Slot] = field(default_factory=list)
    """The cards as the PCI bus shows them; empty: it cannot be read here."""
    bars: list[Bars] = field(default_factory=list)
    """The memory windows that the firmware gave the cards; empty: they cannot be read here."""
    secure_boot: SecureBoot = field(default_factory=SecureBoot)
    kernel_log: KernelLog = field(default_factory=KernelLog)
    boots: str = ""
    """What gpubox.hypervisor.boots reads: how the last boots ended."""


@dataclass(frozen=True)
class Disk:
    """A file system. Bytes."""

    path: str
    size: int
    free: int


@dataclass(frozen=True)
class Venv:
    """A Python environment, and the SGLang in it."""

    path: str
    python: str
    sglang: str
    """Version; empty: it has none."""


@dataclass(frozen=True)
class Server:
    """A model server that runs. Secrets were masked on the machine itself: they never left it."""

    pid: int
    argv: list[str]
    environment: dict[str, str]
    """Without what every login session has (PATH, HOME, ...)."""
    secret_flags: list[str]
    """Flags whose values are masked, as `api-key`."""
    secret_variables: list[str]
    unit: str
    """systemd service that holds it; empty: none, started by hand."""
    folder: str
    """Its working directory."""
    venv: str
    sglang: str
    """Version that its environment has; empty: not found."""
    torch: str
    release: str = ""
    """Digest of gpubox's release that it was started from; empty: gpubox did not start it."""
    common_variables: tuple[str, ...] = ()
    """Names of variables that it has because every login there has them."""
    revision: str = ""
    """Commit of the hub's model in its cache; empty: a local model, or not found."""
    cache: str = ""
    """The hub's cache where that was found."""
    empty_variables: tuple[str, ...] = ()
    """Names of variables that are set to nothing."""
    relative: tuple[str, ...] = ()
    """Words of the command line that are paths seen from `folder`."""
    user: str = "root"
    held: str = ""
    """Who would start it again, or hides its files, as `docker container 3f2a9c1b2d4e`; empty: it can be replaced."""
    source: str = ""
    """Folder of SGLang's sources where those run; empty: an installed release."""
    config: list[tuple[str, Any]] | None = None
    """What the file of `--config` says, name and value in its order; None: no such file, or one that was not read."""
    process: Mapping[str, Any] = field(default_factory=dict)
    """What binds it beyond a login's defaults, by the names of a profile's `process`; `told`: what has none there."""

    @property
    def cards(self) -> set[str] | None:
        """Its cards as CUDA_VISIBLE_DEVICES names them; None: all that there are."""
        named = self.environment.get("CUDA_VISIBLE_DEVICES", "")
        return {part.strip() for part in named.split(",") if part.strip()} or None


@dataclass(frozen=True)
class Box:
    """A machine, as one look found it."""

    hostname: str
    addresses: list[str]
    distribution: str
    """As debian12, ubuntu2404: NVIDIA's repositories name them so."""
    os: str
    kernel: str
    where: Judgement
    python: str
    cpu: str
    cores: int
    sockets: int
    memory: int
    """Bytes that the kernel shows."""
    memory_free: int | None
    """Bytes that programs can still get; None: an old kernel does not say."""
    architecture: str
    """As `uname -m` prints it."""
    memory_limit: int | None
    """Bytes that the control group allows; None: no limit."""
    shm: int | None
    """Bytes of /dev/shm; None: there is none."""
    disks: list[Disk]
    gpus: Gpus
    toolkits: dict[str, str]
    """Toolkit's folder as `12.8` -> the release that its nvcc says it is; empty: broken."""
    toolkit_default: str
    """Where /usr/local/cuda leads; empty: nowhere."""
    venvs: list[Venv]
    units: list[str]
    """Unit files that start a model server, as `NAME STATE`."""
    servers: list[Server]
    users: list[str]
    """Processes that have a card open, as `PID COMMAND`."""
    proxies: dict[str, str]
    """Variables about proxies that systemd gives every service; a proxy's own value is only `set`."""
    login_proxies: dict[str, str]
    """The same of /etc/environment, which logins get and services do not."""
    apt: list[str]
    """What is wrong with apt and dpkg; empty: nothing."""

    @property
    def by_hand(self) -> list[Server]:
        """Servers that gpubox did not start and can take the place of."""
        return [server for server in self.servers if not server.release and not server.held]

    def facts(self, gpus: Gpus | None = None) -> BoxFacts:
        """For the rules. `gpus`: those of the hypervisor, where the container has none yet."""
        seen = gpus or self.gpus
        return BoxFacts(
            cards=card_facts(seen.cards, self.memory_free),
            broken_cards=broken_facts(seen.broken),
            architecture=self.architecture or None,
            recovery=recovery_facts(seen.cards, seen.broken, seen.kernel_log),
            driver=seen.driver,
            module_on_disk=seen.on_disk,
            reboot_for=seen.reboot_for,
            module_license=seen.licence,
            virtualisation=self.where.place,
            distribution=self.distribution or None,
            proxies=self.proxies,
        )


@dataclass(frozen=True)
class Container:
    """A container as its hypervisor lists it."""

    name: str
    """Name, or number on Proxmox."""
    hostname: str
    addresses: list[str]


@dataclass(frozen=True)
class Hypervisor:
    """A machine that holds containers."""

    hostname: str
    kind: str
    """lxc, proxmox, incus; empty: it has none of their programs."""
    os: str
    kernel: str
    gpus: Gpus
    containers: list[Container] = field(default_factory=list)


def card_facts(cards: list[Card], memory_free: int | None = None) -> list[CardFact] | None:
    """Cards for the rules; None, not known, where none is listed.

    + memory_free: bytes that the machine can still give, which is what a card without memory of its own has
    """
    if not cards:
        return None
    shared = None if memory_free is None else memory_free >> 20
    return [
        CardFact(
            name=card.name,
            compute_capability=card.compute_capability,
            memory_mib=shared if card.shares_memory else card.memory_mib,
            power_limit_w=card.power_limit_w,
            uuid=card.uuid,
            pci=card.pci,
        )
        for card in cards
    ]


def broken_facts(broken: list[BrokenCard]) -> list[str]:
    """Broken cards for the rules, as text."""
    return [f"{card.label}: {card.said}" for card in broken]


def recovery_facts(cards: list[Card], broken: list[BrokenCard], log: KernelLog) -> list[str] | None:
    """What the kernel log asks for before these cards are used again; None: it cannot be read here."""
    if not log.readable:
        return None
    answering = {card.pci for card in cards if card.pci}
    ours = answering | {card.pci for card in broken if card.pci}
    # a container may read the log of a machine whose other cards are not its own
    all_known = bool(ours) and all(card.pci for card in cards) and all(card.pci for card in broken)
    return recovery_asked(log.events, ours if all_known else None, answering)
