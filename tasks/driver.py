"""Step `driver`: the userland in exactly the kernel module's version, held; no kernel modules in containers."""

from functools import partial

from pyinfra.context import host

from gpubox.cuda import packages as cuda
from gpubox.deploy import step
from gpubox.driver import packages as names
from gpubox.facts.apt import AptFact
from gpubox.facts.card_limits import LimitsFact
from gpubox.facts.docker import DockerAtRisk
from gpubox.facts.driver import DriverFact
from gpubox.facts.once import read
from gpubox.hosts import Box
from gpubox.operations.card_limits import card_limits
from gpubox.operations.driver import compared, held, non_free, run_file, userland
from gpubox.operations.fabric import fabric_manager


@step("Driver")
def driver(box: Box) -> None:
    """Bring the driver's userland to the version of the kernel module that the box has or sees."""
    wish = box.settings.driver
    look = partial(read, DriverFact, names=names.candidates(wish.packages))

    match wish.source:
        case "nvidia" | "distribution" as origin:
            uris = []
            if origin == "distribution":
                non_free(name="Debian's non-free", apt=partial(read, AptFact, keyrings=()), look=look)
            else:
                uris = [cuda.repository(box.settings.cuda.source.uri, look().distribution)]
            userland(
                name="Userland of the kernel module's version",
                origin=origin,
                chosen=wish.packages,
                uris=uris,
                look=look,
            )
            fabric_manager(
                name="Fabric manager of NVSwitches",
                names=names.candidates(wish.packages),
                uris=uris,
                look=look,
                at_risk=partial(read, DockerAtRisk),
            )
            held(name="Held", look=look)
        case "run":
            run_file(name="Userland from NVIDIA's installer", files=wish.runs, look=look)
    compared(name="One version", look=look)
    card_limits(
        name="Power limits and clocks",
        limits=box.settings.card_limits,
        there=lambda: look().files,
        look=partial(host.get_fact, LimitsFact),
        has_driver=lambda: not look().in_container,
        at_risk=partial(read, DockerAtRisk),
    )
