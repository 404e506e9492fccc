"""Everything that the data of a host may say: one typed tree, units in the names, unknown key = error."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gpubox.support.data import Model

Version = Annotated[str, Field(pattern=r"^\d+\.\d+$")]
"""A toolkit, as `13.1`: major and minor, never `latest` (P24)."""


class Create(Model):
    """How to make the container when its hypervisor does not have it. An existing container is never changed by it."""

    template: str
    """What its root file system is made from. Plain LXC: an archive on the hypervisor (tar, also compressed). Proxmox:
    as `local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst`. Incus: an image, as `images:debian/12`."""
    storage: str = ""
    """Proxmox: the storage of its disk, as `local-zfs`. Incus: the pool. Plain LXC has its folder."""
    disk_gib: int = Field(default=64, ge=4)
    """Size of its disk (Proxmox, Incus)."""
    bridge: str = "vmbr0"
    """The hypervisor's bridge that it hangs on."""
    address: str = Field(default="dhcp", pattern=r"^(dhcp|\d+\.\d+\.\d+\.\d+/\d+)$")
    """`dhcp`, or an IPv4 address with its prefix length, as `10.0.0.5/24`."""
    gateway: str | None = None
    """IPv4 address of the gateway, with a fixed address."""
    cores: int | None = Field(default=None, ge=1)
    """CPU cores it may use; None: all."""
    memory_mib: int | None = Field(default=None, ge=256)
    """MiB of memory it may use; None: no limit (Proxmox: its default of 512)."""
    unprivileged: bool = False
    """Its root is mapped to a user without rights on the hypervisor."""
    public_key: str
    """The ssh public key, as one line, that its root accepts."""
    lines: list[str] = Field(default_factory=list)
    """Plain LXC: further lines of its configuration, as they are."""


class Container(Model):
    """The container that a box is, as its hypervisor knows it."""

    kind: Literal["lxc", "proxmox", "incus"] = "lxc"
    name: str
    """Its name (lxc, incus) or its numeric id (proxmox), as the hypervisor's own commands take it."""
    allow_restart: bool = True
    """May be restarted when its device configuration changed. False: the change is written and reported as pending."""
    create: Create | None = None
    """Make it when the hypervisor does not have it, with sshd and a key in it; None: that is an error."""


class AptSource(Model):
    """Where the CUDA packages come from. Default: NVIDIA's network repository for the box's own distribution."""

    uri: str | None = None
    """Repository URL, ending in a slash; None: NVIDIA's own."""
    keyring: str | None = None
    """A cuda-keyring package on the controller that is sent to the box (a mirror with its own key, no network);
    None: NVIDIA's own is downloaded from `uri` and compared with its known SHA-256."""
    fingerprint: str | None = Field(default=None, pattern=r"^[0-9A-F]{40}$")
    """The key that must be in that keyring, as 40 hexadecimal digits; None: whatever the package holds."""


class RunFile(Model):
    """One of NVIDIA's installers, NVIDIA-Linux-x86_64-VERSION.run."""

    version: str = Field(pattern=r"^\d{3}\.\d+(\.\d+)?$")
    """The driver's version, whole: `590.48.01`."""
    url: str
    """Where the box downloads it from, or a file on the controller that is sent to it."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def is_local(self) -> bool:
        """Whether it lies on the controller."""
        return "://" not in self.url


class Driver(Model):
    """The driver's userland on a box; the kernel module is its hypervisor's, or was there before."""

    source: Literal["nvidia", "distribution", "run", "none"] = "nvidia"
    """`nvidia`: the repository of cuda.source, NVIDIA's own or a mirror. `distribution`: the box's own (with Debian's
    non-free). `run`: one of `runs`. `none`: somebody else puts it there; it is only compared with the kernel module."""
    packages: list[str] = Field(default_factory=list)
    """Packages to ask for, with {major} for the driver's major version. Empty: on Debian libcuda1, libnvidia-ml1 and
    what has nvidia-smi (nvidia-driver-cuda of NVIDIA since 560, else nvidia-smi); on Ubuntu libnvidia-compute-{major}
    and nvidia-utils-{major} (of NVIDIA since 590: libnvidia-compute). What they need comes along."""
    runs: list[RunFile] = Field(default_factory=list)
    """NVIDIA's installers; the one of the kernel module's version is taken."""


Watts = Annotated[int, Field(ge=1, le=5000)]
Megahertz = Annotated[int, Field(ge=1, le=20000)]
_CARD = re.compile(r"all|GPU-[0-9a-f-]+|([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.I)


def _card_name(text: str) -> str:
    if not _CARD.fullmatch(text):
        raise ValueError("all, a UUID or a PCI address is needed (nvidia-smi -L; an index moves when a card is lost)")
    return text


CardName = Annotated[str, AfterValidator(_card_name)]
"""`all`, a UUID or a PCI address."""


class CardLimit(Model):
    """What a card may draw, and how fast it may run. What is not named stays as the driver has it."""

    power_w: Watts | None = None
    """Watts at most. Each card has its own smallest and largest value (`nvidia-smi -q -d POWER`)."""
    graphics_clocks_mhz: list[Megahertz] | None = Field(default=None, min_length=2, max_length=2)
    """Lowest and highest MHz of the graphics clock, as `[210, 1800]` (Volta and newer)."""
    memory_clocks_mhz: list[Megahertz] | None = Field(default=None, min_length=2, max_length=2)
    """Lowest and highest MHz of the memory clock (Ampere and newer)."""

    @model_validator(mode="after")
    def _is_sensible(self) -> Self:
        if self.power_w is None and self.graphics_clocks_mhz is None and self.memory_clocks_mhz is None:
            raise ValueError("names no limit: power_w, graphics_clocks_mhz or memory_clocks_mhz")
        for clocks in (self.graphics_clocks_mhz, self.memory_clocks_mhz):
            if clocks is not None and clocks[0] > clocks[1]:
                raise ValueError(f"clocks {clocks}: the lowest comes first")
        return self


class Cuda(Model):
    """CUDA toolkits, side by side."""

    toolkits: list[Version] = Field(default_factory=lambda: ["12.8", "13.1"], min_length=1)
    """As `12.8`. Each becomes the package cuda-toolkit-X-Y and the folder /usr/local/cuda-X.Y."""
    parts: dict[Version, list[str]] = Field(default_factory=dict)
    """Toolkit -> what of it is installed instead of all: `nvcc`, `cudart-dev`, `libcurand-dev` (cuda-nvcc-X-Y, ...)."""
    exact: dict[str, str] = Field(default_factory=dict)
    """Package -> the version that it must have, as `cuda-nvcc-13-1: 13.1.115-1`; pinned: no upgrade moves it."""
    default: Version = "13.1"
    """What /usr/local/cuda points at, through update-alternatives. A service has its own CUDA_HOME from its stack."""
    source: AptSource = AptSource()


class Limits(Model):
    """Limits of login sessions (pam_limits); the service has its own in its unit."""

    memlock: Literal["unlimited"] | int = "unlimited"
    """KiB that may be locked. NCCL and CUDA pin memory; 8 MiB defaults break them (mlperf-automations#664)."""
    nofile: int = Field(default=1048576, ge=1024)
    """Open files."""


def _sysctls() -> dict[str, int | str]:
    return {"net.core.somaxconn": 4096}


class Base(Model):
    """What every box gets before anything about GPUs."""

    packages: list[str] = Field(
        default_factory=lambda: [
            "build-essential",
            "ca-certificates",
            "curl",
            "libnuma1",
            "ninja-build",
            "pciutils",
            "python3-dev",
            "python3-pip",
            "python3-venv",
            "tzdata",
        ]
    )
    """OS packages by name. SGLang imports libnuma; just-in-time kernels need a compiler, ninja and Python's headers."""
    timezone: str = "Etc/UTC"
    """A name below /usr/share/zoneinfo."""
    limits: Limits = Limits()
    sysctls: dict[str, int | str] = Field(default_factory=_sysctls)
    """Kernel settings of the box's own namespace; one that a container may not set is reported and left."""


class Override(Model):
    """A rule that a person decided to break; it is shown in every later run."""

    rule: str
    """The rule's id, as `gpubox check` prints it."""
    reason: str = Field(min_length=10)
    """Why, for whoever reads it next year."""


class Hub(Model):
    """Where models come from whose model-path is a name of the Hugging Face hub."""

    token_file: str | None = None
    """File on the controller with nothing but a token of the hub (mode 600), for gated models and higher limits."""
    endpoint: str | None = None
    """URL of a mirror; None: huggingface.co."""
    cache: str = ""
    """Folder of the hub's cache on the box; empty: root's own, ~/.cache/huggingface/hub."""


UnitSetting = Literal[
    "AllowedCPUs",
    "AllowedMemoryNodes",
    "CPUQuota",
    "CPUWeight",
    "IOWeight",
    "MemoryHigh",
    "MemoryLow",
    "MemoryMax",
    "MemoryMin",
    "MemorySwapMax",
    "TasksMax",
]
"""Settings of a unit that change what the service may use, and nothing of what it runs."""
UnitValue = Annotated[str, Field(pattern=r"^[\w.,%: -]+$")] | int


class BoxSettings(Model):
    """A GPU box: a container, a VM or bare metal, reached by ssh."""

    hypervisor: str | None = None
    """Inventory name of the hypervisor that holds the container; None: a VM or bare metal."""
    container: Container | None = None
    """Required with `hypervisor`."""
    gpus: Literal["all"] | list[int | str] = "all"
    """Cards of the container: `all`, or a list of indices, UUIDs or PCI addresses."""
    gpus_shared: bool = False
    """Other containers of the hypervisor may have the same cards; they must say so too."""
    gpu_caps: bool = False
    """Also pass /dev/nvidia-caps through: only for MIG or the fabric manager."""
    profile: str
    """Name of a file below profiles/, without .yaml."""
    venv_path: str = Field(default="/root/ml-env", pattern=r"^/[^\s]+$")
    """Where the Python environment of the service is found: a link to the venv of the current release."""
    unit_settings: dict[UnitSetting, UnitValue] = Field(default_factory=dict)
    """Limits of the service as systemd names them (systemd.resource-control(5)), as `MemoryMax: 200G`: part of its
    unit, in effect without a restart. Drop-ins, `systemctl edit` and `set-property` go aside at the next run."""
    api_key_file: str | None = None
    """File on the controller with nothing but the API key that the server asks its clients for (mode 600). The key gets
    to the box in a file for root alone, never onto a command line; None: the server asks for none."""
    hub: Hub = Hub()
    driver: Driver = Driver()
    card_limits: dict[CardName, CardLimit] = Field(default_factory=dict)
    """Card -> its limits, on bare metal and in a VM: `all`, UUIDs or PCI addresses; a card's own entry goes before
    `all`. The limits of a container's cards stand in the data of its hypervisor, which has the driver."""
    cuda: Cuda = Cuda()
    base: Base = Base()
    exposure: Literal["private-network"] | None = None
    """`private-network`: nobody else reaches the address that the server listens on, so a missing API key is fine."""
    overrides: list[Override] = Field(default_factory=list)
    """Rules broken on purpose."""


class HypervisorSettings(Model):
    """A machine that runs containers and owns the cards."""

    kind: Literal["lxc", "proxmox", "incus"] = "lxc"
    """Plain LXC, Proxmox VE or Incus."""
    uvm_disable_hmm: bool = True
    """Option of the same name of the module nvidia_uvm (CUDA fails to start on Blackwell with some kernels without)."""
    card_limits: dict[CardName, CardLimit] = Field(default_factory=dict)
    """Card -> its limits, as `{"all": {"power_w": 450}}`: `all`, UUIDs or PCI addresses; a card's own entry goes before
    `all`. Set at each boot and each load of the driver, which forgets them, and compared at each run. None: nothing of
    it lands on the hypervisor."""
    kernel_command_line: list[str] = Field(default_factory=list)
    """Words for the kernel's command line, as `iommu=pt`; they go through the boot loader that the machine uses, and
    wait for a reboot, which is yours."""
