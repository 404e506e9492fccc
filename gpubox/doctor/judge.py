"""What the answers of a box mean: one check a domain, each against the box's own data."""

from collections.abc import Callable, Iterator

from gpubox import rules
from gpubox.cuda import packages as names
from gpubox.doctor import surroundings
from gpubox.doctor.check import Check, Status, compared
from gpubox.doctor.look import Looks
from gpubox.driver import nvml
from gpubox.facts.apt import AptFact
from gpubox.facts.base import BaseFact
from gpubox.facts.cuda import CudaFact
from gpubox.facts.driver import DriverFact
from gpubox.facts.model import Model
from gpubox.facts.service import ServiceFact
from gpubox.facts.venv import PythonEnv, damage
from gpubox.facts.weights import Weights
from gpubox.hosts import Box
from gpubox.hypervisor import nodes
from gpubox.onboard import links, probe
from gpubox.onboard.state import Box as Seen
from gpubox.rules.finding import Finding
from gpubox.server import in_effect
from gpubox.server.service import UNIT, service_of, weights_of
from gpubox.support import reading
from gpubox.support.errors import GpuboxError

_SLOW_START_S = 15.0
"""Seconds; eight cards that nobody keeps awake take some. There are programs that give up after 30 (ollama#17069)."""
_CUDA_CODES = {
    None: "libcuda.so.1 is not there, or CUDA hangs: the step `driver` of the deploy, then dmesg",
    3: "options nvidia_uvm uvm_disable_hmm=1 on the machine that has the driver, and the module loaded anew",
    100: "no card may be opened: the nodes below /dev/nvidia*, and CUDA_VISIBLE_DEVICES",
    803: "libcuda is of another version than the kernel module: the step `driver` of the deploy",
}
"""What cuInit gives (cuda.h) -> what to do."""
_STATUS: dict[str, Status] = {"error": "fail", "unknown": "unknown", "warning": "warn"}


def static(box: Box) -> list[Check]:
    """The rules that need no host: one line each that is broken, else one that none is."""
    return _rules(box.name, "static", rules.check(box))


def checks(box: Box, looks: Looks, deploy: str) -> Iterator[Check]:
    """Every check of the first round trip, in the order of the deploy.

    + deploy: the command that puts right what differs
    """
    seen = probe.read_box(looks.answers)
    told = {finding.rule for finding in rules.check(box)}
    live = [finding for finding in rules.check(box, seen.facts()) if finding.rule not in told]
    yield from _rules(box.name, "rules", live)
    domains: dict[str, Callable[[Box, Looks, Seen, str], Check]] = {
        "host": _host,
        "driver": _driver,
        "devices": _devices,
        "cuda-start": _cuda_start,
        "proxy": _proxy,
        "nccl": _nccl,
        "apt": _apt,
        "cuda": _cuda,
        "venv": _venv,
        "model": _model,
        "service": _service,
    }
    for name, judge in domains.items():
        yield told_or_not(box.name, name, lambda judge=judge: judge(box, looks, seen, deploy))  # type: ignore[misc]  # a default binds the loop's value


def in_container(looks: Looks) -> bool:
    """Whether the box is one: its kernel is another machine's."""
    return probe.read_box(looks.answers).where.place == "lxc"


def told_or_not(host: str, name: str, judge: Callable[[], Check]) -> Check:
    """The check, or that it could not be told and why."""
    try:
        return judge()
    except GpuboxError as error:
        return Check(host, name, "unknown", error.found, error.needed, error.todo)
    except reading.FOREIGN as error:
        told = reading.cannot_tell(name, "", error)
        return Check(host, name, "unknown", told.found, told.needed, told.todo)


def _rules(host: str, name: str, found: list[Finding]) -> list[Check]:
    told = [finding for finding in found if finding.severity in _STATUS]
    if not told:
        return [Check(host, name, "pass", "no rule is broken")]
    return [Check(host, f"{name}.{f.rule}", _STATUS[f.severity], f.found, f.needed, f.todo) for f in told]


def _host(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    state, wish = looks.fact(BaseFact(), "base"), box.settings.base
    wanted = [name.partition("=")[0] for name in wish.packages]
    wrong = [f"{name} is not installed" for name in wanted if not _installed(state.packages.get(name))]
    if state.timezone != wish.timezone:
        wrong.append(f"time zone {state.timezone or '(none)'}, not {wish.timezone}")
    for key, value in wish.sysctls.items():
        found = state.sysctls[key]
        if found.access == "rw" and found.value != str(value):
            wrong.append(f"{key} is {found.value}, not {value}")
    right = f"{len(wanted)} packages, {state.timezone}, {len(wish.sysctls)} kernel settings"
    return compared(box.name, "host", wrong, right, deploy)


def _installed(package: object) -> bool:
    return bool(getattr(package, "installed", False))


def _driver(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    gpus, needs = seen.gpus, box.stack.device == "cuda"
    if not needs:
        version = f"version {gpus.driver}" if gpus.driver else "none is loaded"
        return Check(box.name, "driver", "pass", f"not needed: the stack runs on CPU ({version})")
    state = looks.fact(DriverFact(), "libraries")
    wrong = [] if gpus.driver else ["no kernel module is loaded"]
    wrong += [f"/dev/nvidiactl: {gpus.answers}"] if gpus.answers else []
    cure = deploy
    if gpus.trouble:
        told = nvml.explain(gpus.trouble)
        wrong.append(f"nvidia-smi: {told.found} ({told.cause})")
        cure = f"{told.cure} (the deploy: {deploy})"
    for name, versions in state.libraries.items():
        if gpus.driver and versions != [gpus.driver]:
            wrong.append(f"{name} is {', '.join(versions)}, the kernel module {gpus.driver}")
    if surroundings.is_refused(gpus):
        cure = surroundings.cure_of_refusal(box, deploy)
    return compared(box.name, "driver", wrong, f"{gpus.driver}, {len(gpus.cards)} cards", cure, "a driver that answers")


def _devices(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    """The nodes in the box, as /proc/devices numbers them: the same in a container, whose kernel is its host's."""
    present = seen.gpus.nodes
    numbers = (path.removeprefix("/dev/nvidia") for path in present)
    minors = [int(number) for number in numbers if number.isdigit()]
    if not minors and box.stack.device == "cpu" and box.settings.hypervisor is None:
        return Check(box.name, "devices", "pass", "not needed: the stack runs on CPU")
    if not minors:
        cure = deploy if box.settings.hypervisor else "install the driver, then nvidia-modprobe -u -c 0"
        return Check(box.name, "devices", "fail", "no /dev/nvidiaN", "a node for each card", cure)
    try:
        wrong = nodes.wrong(nodes.needed(seen.gpus.proc_devices, minors), present)
    except GpuboxError as error:
        wrong = [error.found]
    return compared(box.name, "devices", wrong, f"{len(minors)} cards and the control nodes", deploy)


def _cuda_start(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    if box.stack.device == "cpu":
        return Check(box.name, "cuda-start", "pass", "not needed: the stack runs on CPU")
    text = looks.answers["cuinit"].expect(0, what="the start of CUDA (a Python on the box)")
    tries = [(row["code"], float(row["s"])) for row in reading.json_object(text, "the start of CUDA")["tries"]]
    told = ", ".join(f"{'none' if code is None else code} in {s} s" for code, s in tries)
    if tries[-1][0] != 0:
        if tries[-1][0] == 802:
            cure = surroundings.cause_of_802(box, looks, seen.gpus.driver)
            return Check(box.name, "cuda-start", "fail", f"cuInit gave {told}: not yet initialized", "0", cure)
        cure = _CUDA_CODES.get(tries[-1][0], "dmesg on the machine that has the driver says why (NVRM, Xid)")
        return Check(box.name, "cuda-start", "fail", f"cuInit gave {told}", "0", cure)
    if len(tries) > 1 or tries[0][1] > _SLOW_START_S:
        cure = "the persistence daemon on the machine that has the driver; allow programs more time for their start"
        return Check(box.name, "cuda-start", "warn", f"cuInit gave {told}", f"0 at once, in {_SLOW_START_S} s", cure)
    return Check(box.name, "cuda-start", "pass", f"cuInit answers in {tries[0][1]} s")


def _proxy(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    return surroundings.proxies(box, seen)


def _nccl(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    if box.stack.device == "cpu" or len(seen.gpus.cards) < 2:
        return Check(box.name, "nccl", "pass", "not needed: no server over several cards")
    choice, wrong = links.compared(box, seen.facts(), seen.gpus)
    if choice.open:
        return Check(box.name, "nccl", "unknown", f"not known: {choice.open}", "links between the cards", "")
    if not wrong:
        return Check(box.name, "nccl", "pass", choice.words or "not needed: the server uses one card")
    found = f"the profile has {', '.join(wrong)}"
    return Check(box.name, "nccl", "warn", found, f"{choice.words}: {choice.why}", "measure both (gpubox bench)")


def _apt(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    state = looks.fact(AptFact(), "sources")
    wrong = [f"{name} is half-way ({letters})" for name, letters in state.unsettled.items()]
    wrong += ["dpkg was interrupted"] if state.interrupted else []
    wrong += ["installed packages lack others that they need"] if state.unmet else []
    wrong += [line for line in seen.apt if line.startswith("E:")]
    if not wrong and state.holders:
        shown = "; ".join(f"{holder.pid} {holder.command}" for holder in state.holders)
        return Check(box.name, "apt", "warn", f"in use by {shown}", "", "wait until it is done")
    return compared(box.name, "apt", list(dict.fromkeys(wrong)), "healthy", deploy)


def _cuda(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    state, wish = looks.fact(CudaFact(), "cuda"), box.settings.cuda
    wrong = []
    for version in wish.toolkits:
        if names.has_compiler(version, wish.parts) and state.nvcc.get(version) != version:
            said = state.nvcc.get(version)
            wrong.append(f"nvcc of {version} says {said}" if said else f"{version} is absent, or its nvcc is broken")
    if state.link != names.home(wish.default):
        wrong.append(f"/usr/local/cuda leads to {state.link or 'nowhere'}, not {names.home(wish.default)}")
    elif state.alternatives is None or not state.alternatives.manual:
        wrong.append("the default is left to package operations (update-alternatives: auto)")
    return compared(box.name, "cuda", wrong, f"{', '.join(wish.toolkits)}, default {wish.default}", deploy)


def _venv(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    venv, stack = looks.fact(PythonEnv(), "python-env").venv, box.stack
    if venv.kind != "whole":
        return Check(box.name, "venv", "fail", f"the venv is {venv.kind}", f"one of stack {stack.name}", deploy)
    kept = {build.package for build in stack.source_builds}
    wrong = [
        f"{n} {venv.packages.get(n, 'missing')}, not {v}" for n, v in stack.pins.items() if venv.packages.get(n) != v
    ]
    wrong += [f"{name} is not of the lock" for name in venv.packages if name not in stack.pins and name not in kept]
    wrong += [f"{name} was changed" for name in venv.changed]
    wrong += damage(venv)
    return compared(
        box.name, "venv", _few(wrong), f"{len(venv.packages)} packages of {stack.name}, Python {venv.python}", deploy
    )


def _model(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    path = box.profile.model_path
    if weights_of(box) is not None:
        event = looks.fact(Weights(), "model")
        lacks = [] if event["event"] == "complete" else [f"lacks {', '.join(event.get('lacks', []))}"]
        return compared(box.name, "model", lacks, f"{path} is complete", deploy)
    state = looks.fact(Model(), "model")
    wrong = [] if state.exists else [f"{path} is not there"]
    wrong += [f"{path} lacks {', '.join(state.lacks)}"] if state.exists and state.lacks else []
    wrong += [f"{path} is not as it was made"] if state.damaged else []
    cure = deploy if box.profile.model.make else f"put the model's files into {path}"
    return compared(box.name, "model", wrong, f"{path} is complete", cure)


def _service(box: Box, looks: Looks, seen: Seen, deploy: str) -> Check:
    wish = service_of(box)
    state = looks.fact(ServiceFact(), "service")
    digest = wish.release.digest
    active, enabled = state.properties.get("ActiveState", ""), state.properties.get("UnitFileState", "")
    wrong = [] if active == "active" else [f"{UNIT} is {active or 'not there'}"]
    wrong += [] if enabled == "enabled" else [f"{UNIT} is {enabled or 'not'} enabled"]
    differing = [file.path for file in wish.files if not file.is_at(state.files[file.path])]
    wrong += _few([f"{path} differs" for path in differing])
    effective = state.releases.effective
    wrong += _few(in_effect.wrong(effective, UNIT))
    if effective.process is not None:
        wrong.append(f"its process is not the one asked for: {effective.process}")
    wrong += [f"{path} is another's to write" for path in state.releases.loose]
    if not wrong and not state.serves(digest):
        runs = state.releases.runs or "something else"
        wrong.append(f"the process was started from {runs}, not from release {digest}")
    more = in_effect.standing(effective, UNIT)
    if more and not wrong:
        return Check(box.name, "service", "warn", "; ".join(more), "the unit alone", in_effect.CURE)
    cure = f"{deploy}; why it is down: journalctl -u {UNIT}" if active != "active" else deploy
    return compared(box.name, "service", wrong, f"{UNIT} is active, release {digest}", cure)


def _few(lines: list[str], most: int = 3) -> list[str]:
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]
