"""The hosts of an inventory: boxes and hypervisors, with everything that is wished for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpubox.settings.host import BoxSettings, CardLimit, HypervisorSettings
from gpubox.settings.profile import Profile
from gpubox.settings.stack import Stack
from gpubox.support import secret_files


@dataclass(frozen=True)
class Box:
    """A GPU box with everything that is wished for it."""

    name: str
    settings: BoxSettings
    profile: Profile
    stack: Stack
    connection: Mapping[str, Any] = field(default_factory=dict)
    """pyinfra's own data of the host: ssh_hostname, ssh_user, ssh_key, ..., and global arguments as _sudo."""
    hypervisor_limits: Mapping[str, CardLimit] = field(default_factory=dict)
    """`card_limits` of the hypervisor that holds the container."""

    @property
    def card_limits(self) -> Mapping[str, CardLimit]:
        """The limits that its cards must have, wherever they are set."""
        return self.hypervisor_limits if self.settings.hypervisor else self.settings.card_limits

    @property
    def address(self) -> str:
        """Where ssh reaches it."""
        return str(self.connection.get("ssh_hostname", self.name))

    def api_key(self) -> str | None:
        """What the server asks its clients for; None: nothing. Errors as for `secret_files.read`."""
        path = self.settings.api_key_file
        return None if path is None else secret_files.read(path, f"{self.name}: api_key_file")

    def authorization(self) -> dict[str, str]:
        """The HTTP headers that a client of the server needs. Errors as for `secret_files.read`."""
        key = self.api_key()
        return {} if key is None else {"Authorization": f"Bearer {key}"}


@dataclass(frozen=True)
class Hypervisor:
    """A machine that holds boxes as containers."""

    name: str
    settings: HypervisorSettings
    boxes: tuple[Box, ...] = ()
    connection: Mapping[str, Any] = field(default_factory=dict)
