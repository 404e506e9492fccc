"""All checks of some boxes, hosts side by side."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gpubox.doctor import above, ask, deep, hardware, judge, look
from gpubox.doctor.check import Check
from gpubox.doctor.look import Looks
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.onboard import probe
from gpubox.onboard.hardware import View
from gpubox.server import outside
from gpubox.support import ssh
from gpubox.support.errors import GpuboxError

AT_ONCE = 32


@dataclass(frozen=True)
class Report:
    """One box: its checks in order, and the log's last lines for a bundle."""

    box: Box
    checks: list[Check]
    log: list[str]


def examine(inventory: Inventory, boxes: Iterable[Box], in_depth: bool = False) -> list[Report]:
    """Two round trips to each box; to its hypervisor one, beside the first. `in_depth`: one more, which reads all."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return list(pool.map(lambda box: _report(inventory, box, in_depth), boxes))


def _report(inventory: Inventory, box: Box, in_depth: bool) -> Report:
    deploy = f"pyinfra -y {inventory.path} deploy.py"
    held = inventory.hypervisors.get(box.settings.hypervisor or "")
    checks = judge.static(box)
    with ThreadPoolExecutor(max_workers=2) as pool:
        first = pool.submit(_looked, lambda: look.box(box))
        beside = pool.submit(_looked, lambda: look.hypervisor(held, box)) if held else None
        looks, hyper = first.result(), beside.result() if beside else None
    if held is not None and hyper is not None:
        checks.append(_of(box, "hypervisor", hyper, lambda looks: above.check(held, box, looks, deploy)))
    views = _views(box, looks, held.name if held else "", hyper)
    if isinstance(looks, GpuboxError):
        return Report(box, [*checks, *hardware.checks(box, views, held is not None), _unreached(box, looks)], [])
    checks.append(Check(box.name, "ssh", "pass", f"{box.address} answers"))
    checks += judge.checks(box, looks, deploy)
    checks += hardware.checks(box, views, judge.in_container(looks))
    answered = _looked(lambda: look.endpoint(box))
    endpoint = _of(box, "endpoint", answered, lambda looks: ask.endpoint(box, looks))
    checks.append(endpoint)
    if endpoint.status == "pass":
        checks.append(ask.outside(box, outside.ask(box, lambda text: ssh.run(box.address, box.connection, text))))
    checks.append(_of(box, "performance", answered, lambda looks: ask.performance(box, looks)))
    checks += _deep(box, deploy) if in_depth else []
    log = [] if isinstance(answered, GpuboxError) else answered.answers["log"].text.splitlines()
    return Report(box, hardware.without_restart(checks, views), log)


def _views(box: Box, looks: Looks | GpuboxError, above_name: str, hyper: Looks | GpuboxError | None) -> list[View]:
    """The cards as the machines that were reached see them."""
    found: list[View] = []
    for name, seen in ((box.name, looks), (above_name, hyper)):
        if not isinstance(seen, Looks):
            continue
        try:
            found.append((name, probe.read_gpus(seen.answers)))
        except GpuboxError:  # the checks of that machine say which answer cannot be read
            continue
    return found


def _deep(box: Box, deploy: str) -> list[Check]:
    try:
        return deep.checks(box, deep.look(box), deploy)
    except GpuboxError as error:
        return [Check(box.name, "deep", "unknown", error.found, error.needed, error.todo)]


def _looked(take: Callable[[], Looks]) -> Looks | GpuboxError:
    try:
        return take()
    except GpuboxError as error:
        return error


def _of(box: Box, name: str, looks: Looks | GpuboxError, judged: Callable[[Looks], Check]) -> Check:
    if isinstance(looks, GpuboxError):
        return Check(box.name, name, "unknown", looks.found, looks.needed, looks.todo)
    return judge.told_or_not(box.name, name, lambda: judged(looks))


def _unreached(box: Box, error: GpuboxError) -> Check:
    return Check(box.name, "ssh", "unknown", error.found, error.needed, error.todo)
