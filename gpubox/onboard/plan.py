"""What onboarding will write for a machine, out of what was seen and what a person decided."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubox.catalog import matrix
from gpubox.nccl.choose import Choice, choose
from gpubox.onboard import files, secrets
from gpubox.onboard.adoption import Adopted, profile_text
from gpubox.onboard.findings import source
from gpubox.onboard.login import Login
from gpubox.onboard.state import Box, Container, Hypervisor
from gpubox.settings.host import Cuda
from gpubox.support import paths
from gpubox.support.errors import GpuboxError
from gpubox.support.versions import at_least


@dataclass(frozen=True)
class Target:
    """Who is onboarded, and how it is reached."""

    name: str
    login: Login
    via: Login | None = None
    """Of the hypervisor."""
    above: str = ""
    """Name that the inventory has for the hypervisor already; empty: its host name will do."""
    cuda: Mapping[str, Any] = field(default_factory=dict)
    """The box's `cuda` settings that differ from the defaults."""


@dataclass(frozen=True)
class Looked:
    """What was seen of it."""

    target: Target
    box: Box
    above: Hypervisor | None
    container: Container | None

    @property
    def choice(self) -> Choice:
        """Settings for communication between its cards."""
        seen = source(self.box, self.above)
        return choose(self.box.where.place, seen.links, seen.p2p, [card.index for card in seen.cards])

    def data(self) -> dict[str, Any]:
        """What the inventory says of the box, without its profile."""
        target, values = self.target, dict[str, Any]()
        values["ssh_hostname"] = target.login.address
        if self.above is not None and self.container is not None:
            values["hypervisor"] = target.above or self.above.hostname
            # a first run may restart it for its devices, unless something serves there already
            serving = {"allow_restart": False} if self.box.by_hand else {}
            values["container"] = {"kind": self.above.kind, "name": self.container.name, **serving}
        cuda = {**self._toolkits(), **target.cuda}
        return {**values, **({"cuda": cuda} if cuda else {}), **target.login.connection}

    def _toolkits(self) -> dict[str, Any]:
        """Those of the default that NVIDIA's repository for the distribution has, where it lacks one of them."""
        wish, first = Cuda(), matrix().first_toolkit.get(self.box.distribution)
        if first is None or "source" in self.target.cuda:
            return {}
        carried = [version for version in wish.toolkits if at_least(version, first)]
        return {"toolkits": carried} if wish.default in carried and carried != wish.toolkits else {}

    def hypervisor_data(self) -> tuple[str, dict[str, Any]] | None:
        """Name and data of the hypervisor for the inventory; None: there is none."""
        via = self.target.via
        if self.above is None or via is None:
            return None
        return self.target.above or self.above.hostname, {
            "ssh_hostname": via.address,
            "kind": self.above.kind,
            **via.connection,
        }


def container_of(address: str, box: Box, above: Hypervisor) -> Container:
    """Which of the hypervisor's containers the box is: by address, else by host name. Error: none, or several."""
    known = {address, *box.addresses}
    found = [one for one in above.containers if known & set(one.addresses)]
    found = found or [one for one in above.containers if one.hostname == box.hostname]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{one.name} ({' '.join(one.addresses) or 'stopped'})" for one in above.containers) or "none"
    raise GpuboxError(
        f"{above.hostname} lists {'several containers' if found else 'no container'} with the address {address}",
        f"exactly one of its containers: {listed}",
        "check --via, or leave it out for bare metal and VMs",
    )


def changes(
    looked: Looked,
    profile: str,
    adopted: Adopted | None,
    inventory: Path,
    private: bool,
    api_key_file: str | None = None,
) -> list[files.Change]:
    """Files to write, in the order to write them; one that says already what it must is left out.

    + private: nobody else reaches the address that the server listens on
    + api_key_file: the key that clients must give; None: an adopted server's own, if it has one

    Error: a profile of the adopted server's name says something else.
    """
    target, wanted = looked.target, list[files.Change]()
    data = {**looked.data(), "profile": profile, **({"exposure": "private-network"} if private else {})}
    if adopted:
        now = datetime.datetime.now(datetime.UTC).date().isoformat()
        wanted.append(_profile(profile, adopted, looked, now))
        if adopted.api_key and not api_key_file:
            data["api_key_file"] = _home(secrets.path(target.name, "api-key"))
        token = {"token_file": _home(secrets.path(target.name, "hub-token"))} if adopted.hub_token else {}
        cache = {"cache": adopted.hub_cache} if adopted.hub_cache else {}
        if token or cache:
            data["hub"] = {**token, **cache}
    if api_key_file:
        data["api_key_file"] = _home(Path(api_key_file))
    title = f"{looked.box.hostname}: written by `gpubox onboard`, yours to edit."
    if change := files.inventory_with(inventory, (target.name, _ordered(data)), looked.hypervisor_data(), title):
        wanted.append(change)
    return [change for change in wanted if change.text != change.before]


def _profile(name: str, adopted: Adopted, looked: Looked, now: str) -> files.Change:
    path = paths.profiles() / f"{name}.yaml"
    model = adopted.flags.get(
        "served-model-name", adopted.flags.get("model-path", adopted.flags.get("model", "a model"))
    )
    purpose = "practice" if adopted.stack.device == "cpu" else "throughput"
    names = [card.name for card in source(looked.box, looked.above).cards]
    text = profile_text(adopted, f"{model}, as it ran on {looked.target.name}", purpose, now, names)
    change = files.Change(path, text)
    old = change.before.partition("\n")[2]
    if old and old != text.partition("\n")[2]:  # the first line holds the day
        raise GpuboxError(f"{path} is there and says something else", "a new name", "--profile-name NAME")
    return files.Change(path, change.before) if old else change


def _ordered(data: dict[str, Any]) -> dict[str, Any]:
    """As people write them: address, hypervisor, container, profile, then the rest."""
    first = ("ssh_hostname", "hypervisor", "container", "profile", "exposure", "api_key_file", "hub", "cuda")
    return {key: data[key] for key in (*first, *data) if key in data}


def _home(path: Path) -> str:
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
