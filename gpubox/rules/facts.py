"""What is known of a box from the box itself: the optional half of what rules judge by."""

from typing import Literal

from pydantic import Field

from gpubox.support.data import Model


class CardFact(Model):
    """One card, as nvidia-smi lists it."""

    name: str
    """As nvidia-smi prints it; empty: it does not tell."""
    compute_capability: str | None
    """As `12.0`; None: not known."""
    memory_mib: int | None
    """In all; of a card that uses the processor's memory, what the machine can still give. None: not known."""
    power_limit_w: float | None = None
    """Watts, as it is set now."""
    uuid: str = ""
    """As nvidia-smi prints it; empty: not known."""
    pci: str = ""
    """PCI address as 0000:c1:00.0; empty: not known."""


class BoxFacts(Model):
    """Every field is optional: None means not known, and a rule that needs it says that it cannot tell."""

    cards: list[CardFact] | None = None
    """In the order of nvidia-smi; an empty list is a box without cards."""
    broken_cards: list[str] = Field(default_factory=list)
    """Cards that the driver lists and that do not answer, each with what nvidia-smi says of it."""
    recovery: list[str] | None = None
    """What the kernel log asks for before the cards are used again, a line a card; None: it cannot be read."""
    architecture: str | None = None
    """As `uname -m` prints it."""
    driver: str | None = None
    """Version of the loaded kernel module, as /proc/driver/nvidia/version has it."""
    module_on_disk: str | None = None
    """Version of the module that a load would bring now; None: not known, or a container, whose kernel is elsewhere."""
    reboot_for: list[str] = Field(default_factory=list)
    """Packages for which the distribution asks for a reboot."""
    module_license: str | None = None
    """As `modinfo -F license nvidia` says: `Dual MIT/GPL` is the open kernel module, `NVIDIA` the proprietary one."""
    virtualisation: Literal["bare", "lxc", "vm"] | None = None
    """What the box itself says that it is."""
    p2p: bool | None = None
    """Whether data written by one card was read back right by another, measured for every pair."""
    distribution: str | None = None
    """As NVIDIA's repositories name it: debian12, ubuntu2404."""
    proxies: dict[str, str] | None = None
    """Variables about proxies that systemd gives every service; of a proxy itself only `set`, never its password."""
    heads: int | None = Field(default=None, ge=1)
    """Attention heads in the config.json of the model that lies on the box."""
