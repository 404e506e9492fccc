"""What a box meets around its server: a refusing device cgroup, proxies, NVSwitches, a driver
that waits on disk."""

from gpubox.doctor.check import Check
from gpubox.doctor.look import Looks
from gpubox.driver import fabric
from gpubox.hosts import Box
from gpubox.onboard.state import Box as Seen
from gpubox.onboard.state import Gpus
from gpubox.server import proxy


def is_refused(gpus: Gpus) -> bool:
    """Whether the nodes are there and may not be opened: a device cgroup, never a driver that
    lacks something."""
    return "not permitted" in gpus.answers and bool(gpus.nodes)


def cure_of_refusal(box: Box, deploy: str) -> str:
    """What gives a container its cards back; the driver itself needs nothing."""
    cause = "if it worked before: a systemctl daemon-reload on its host took the cards from the container; "
    if box.settings.hypervisor:
        return f"{cause}{deploy}: it starts the container anew on {box.settings.hypervisor}; install no driver for it"
    return f"{cause}start the container anew on its host (docker restart NAME, lxc-stop and lxc-start); no driver"


def proxies(box: Box, seen: Seen) -> Check:
    """Whether a login on the box reaches the server past its proxy; what the service has the
    rules judge."""
    name = proxy.asks_itself_through(seen.login_proxies)
    lacking = proxy.uncovered(seen.login_proxies, proxy.own_addresses(box)) if name else []
    if not lacking:
        told = f"{name}, with exceptions for the server" if name else "none for plain HTTP in /etc/environment"
        return Check(box.name, "proxy", "pass", told)
    wanted = ",".join([*proxy.exceptions(seen.login_proxies), *lacking])
    found = f"/etc/environment has {name} and no exception for {', '.join(lacking)}"
    return Check(
        box.name,
        "proxy",
        "warn",
        found,
        "exceptions, or what people ask the server with curl there goes to the proxy",
        f"NO_PROXY={wanted} and no_proxy the same in /etc/environment",
    )


def fabric_faults(looks: Looks, module: str | None) -> list[str]:
    """What is wrong with NVSwitches and their manager on the machine that was asked; empty:
    nothing, or not asked."""
    if "fabric" not in looks.answers:
        return []
    states = looks.answers["fabric-states"].text if "fabric-states" in looks.answers else ""
    return fabric.wrong(fabric.parse(looks.answers["fabric"].text), module, states)


def cause_of_802(box: Box, looks: Looks, module: str | None) -> str:
    """Why CUDA says that the system is not yet initialized, as far as the machine itself tells."""
    if faults := fabric_faults(looks, module):
        return "; ".join(faults)
    if box.settings.hypervisor:
        return f"the fabric manager is {box.settings.hypervisor}'s to run, in the driver's version: see there"
    return f"the fabric manager of NVSwitch machines does not run, or is not of the driver's version ({fabric.UNIT})"
