"""Toolkits, torch's CUDA, the driver: what was built with what, and what can run it."""

import re
from collections.abc import Iterator, Sequence

from gpubox.catalog import Card
from gpubox.cuda.packages import distribution_name, not_carried
from gpubox.rules.context import Context
from gpubox.rules.facts import CardFact
from gpubox.rules.finding import Told, UnknownError
from gpubox.rules.registry import rule
from gpubox.support.versions import at_least


@rule(
    "cuda-lane",
    "error",
    "torch, the toolkit of the service and SGLang's packages are of one CUDA.",
    "https://docs.sglang.io/get_started/install.html (0.5.19 is the last with CUDA 12)",
    "https://github.com/Dao-AILab/flash-attention/issues/1759 (a mismatch breaks what is compiled on the box)",
    needs=("release",),
)
def lane(c: Context) -> Iterator[Told]:
    """Major versions: minors of one major work together."""
    if not c.gpu:
        return
    torch = c.stack.torch_cuda
    if torch is None:
        yield Told(
            f"stack {c.stack.name} is for cards, and its torch {c.stack.torch} has no CUDA",
            "a CUDA build",
            "torch_cuda",
        )
        return
    if torch.startswith("12.") and at_least(c.release.sglang, c.matrix.cuda13_only_from):
        found = f"SGLang {c.release.sglang} with torch for CUDA {torch}"
        yield Told(found, "CUDA 13: its CUDA 12 packages ended with 0.5.19", "torch for CUDA 13, or SGLang 0.5.19")
    if torch.split(".")[0] != c.stack.cuda_home.split(".")[0]:
        found = f"CUDA_HOME is toolkit {c.stack.cuda_home}, torch was built with CUDA {torch}"
        yield Told(found, f"a toolkit {torch.split('.')[0]}.x", "change the stack's cuda_home")


@rule(
    "stack-pins",
    "error",
    "A stack for cards has the torch that its SGLang pins.",
    "read in the wheel's metadata",
    "https://github.com/sgl-project/sglang/issues/36462 (undefined symbol: kernels built for another torch)",
    needs=("release",),
)
def pins(c: Context) -> Iterator[Told]:
    """CPU stacks differ on purpose: SGLang pins CUDA builds."""
    pinned, given = c.release.pin("torch"), c.stack.torch.split("+")[0]
    if c.gpu and pinned is not None and given != pinned:
        yield Told(
            f"stack {c.stack.name} has torch {given}", f"torch {pinned} for SGLang {c.release.sglang}", "change it"
        )


@rule(
    "nvcc-sm12x",
    "error",
    "The service's toolkit is new enough to compile FlashInfer's kernels for SM12x.",
    "read in the flashinfer wheels: from 0.6.7 on nvcc below 12.9 is refused; 0.7.1 takes 12.8 for SM120 again",
    "https://github.com/flashinfer-ai/flashinfer/issues/2577 (the error that is seen names something else)",
    needs=("release", "card"),
)
def nvcc(c: Context) -> Iterator[Told]:
    """FlashInfer reads nvcc, not torch: CUDA_HOME, then PATH, then /usr/local/cuda."""
    if not c.gpu or not c.sm12:
        return
    version = c.locked("flashinfer-python")
    floor = c.matrix.nvcc_for(c.card.compute_capability, version)
    home, capability = c.stack.cuda_home, c.card.compute_capability
    if floor is not None and not at_least(home, floor):
        found = f"CUDA_HOME is toolkit {home}, FlashInfer {version} compiles for compute capability {capability}"
        yield Told(found, f"nvcc {floor} or newer", "a newer toolkit as the stack's cuda_home")
    elif version is not None and at_least(version, "0.6.7") and not at_least(home, "12.9"):
        found = f"CUDA_HOME is toolkit {home}; FlashInfer {version} then compiles for 120a, not for 120f"
        yield Told(found, "nvcc 12.9 or newer", "a newer toolkit as the stack's cuda_home", "warning")


@rule(
    "toolkit-installed",
    "error",
    "Every toolkit that is used is one that the box gets.",
    "recorded deployment: CUDA_HOME=/usr/local/cuda-12.8 while the system's default stayed 13.1",
)
def installed(c: Context) -> Iterator[Told]:
    """CUDA_HOME of the service, the system's default, and what packages are built against."""
    there = c.settings.cuda.toolkits
    uses = {f"CUDA_HOME of stack {c.stack.name}": c.stack.cuda_home, "cuda.default": c.settings.cuda.default}
    uses |= {f"the build of {b.package}": b.cuda for b in c.stack.source_builds}
    for what, version in uses.items():
        if version not in there:
            yield Told(
                f"{what} is {version}", f"one of cuda.toolkits: {', '.join(there)}", f"add {version} to cuda.toolkits"
            )


@rule(
    "source-build-cuda",
    "error",
    "What is built on the box is built with the CUDA that torch was built with.",
    "https://github.com/Dao-AILab/flash-attention/issues/1759",
    "recorded deployment: flash-attn would not build against 13.1",
)
def source_build(c: Context) -> Iterator[Told]:
    """torch's extension builder refuses another major version."""
    for build in c.stack.source_builds:
        torch = c.stack.torch_cuda
        if torch is not None and build.cuda.split(".")[0] != torch.split(".")[0]:
            yield Told(
                f"{build.package} is built with CUDA {build.cuda}, torch with {torch}",
                f"CUDA {torch}",
                "change `cuda` there",
            )


@rule(
    "source-build-card",
    "warning",
    "What is built on the box is built for its cards.",
    "https://github.com/Dao-AILab/flash-attention (setup.py compiles for FLASH_ATTN_CUDA_ARCHS alone)",
    needs=("card",),
)
def source_build_card(c: Context) -> Iterator[Told]:
    """A stack that was made for other cards builds kernels that these cannot run."""
    if not c.gpu:
        return
    for build in c.stack.source_builds:
        named = next((text for name, text in build.environment.items() if name.endswith("_CUDA_ARCHS")), "")
        own = c.card.compute_capability.replace(".", "") if named else ""
        if own not in re.split(r"[;, ]+", named):
            found = f"stack {c.stack.name} builds {build.package} for compute capability {named} alone"
            todo = f"a stack of your own whose source build names {own}; what calls {build.package} fails else"
            yield Told(found, f"{own} for {c.card.name}", todo)


@rule(
    "driver-version",
    "error",
    "The driver knows the card and runs the stack's CUDA.",
    "https://docs.nvidia.com/deploy/cuda-compatibility/",
    "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/",
    needs=("card", "facts"),
)
def driver(c: Context) -> Iterator[Told]:
    """The smallest of the card, of torch's CUDA major, and (a warning) of the toolkit that compiles kernels."""
    if not c.gpu:
        return
    major = (c.stack.torch_cuda or "").split(".")[0]
    floors = {c.card.name: c.card.driver, f"CUDA {major}": c.matrix.drivers_of_major.get(major, "0")}
    found = c.driver
    for what, floor in floors.items():
        if not at_least(found, floor):
            yield Told(
                f"driver {found}",
                f"{floor} or newer for {what}",
                "update the driver (on the hypervisor, for a container)",
            )
    own = c.matrix.drivers.get(c.stack.cuda_home, "0")
    if not at_least(found, own) and all(at_least(found, floor) for floor in floors.values()):
        text = f"driver {found} is older than toolkit {c.stack.cuda_home}"
        yield Told(
            text, f"{own} or newer for what is compiled to PTX", "update the driver if kernels fail to load", "warning"
        )


@rule(
    "driver-module",
    "error",
    "Blackwell cards are driven by the open kernel module.",
    "https://github.com/NVIDIA/open-gpu-kernel-modules (Blackwell and later: open modules only)",
    "https://github.com/getsolus/packages/issues/5575 (nvidia-smi: no devices)",
    needs=("card", "facts"),
)
def module(c: Context) -> Iterator[Told]:
    """The proprietary one finds no card."""
    if c.gpu and c.card.open_module and "GPL" not in c.module_license:
        found = f"kernel module with licence {c.module_license!r} for {c.card.name}"
        yield Told(found, "the open module (licence `Dual MIT/GPL`)", "install the driver's -open packages")


@rule(
    "toolkit-distribution",
    "error",
    "The distribution's repository carries the toolkits.",
    "https://developer.download.nvidia.com/compute/cuda/repos/ (12.8 has none for Debian 13)",
    needs=("facts",),
)
def distribution(c: Context) -> Iterator[Told]:
    """Only where NVIDIA's own repository is used."""
    if not c.gpu or c.settings.cuda.source.uri is not None:
        return
    if missing := not_carried(c.distribution, c.settings.cuda.toolkits, c.matrix.first_toolkit):
        yield Told(missing.found, missing.needed, missing.todo)


@rule(
    "distribution-glibc",
    "error",
    "The distribution's C library is the one that SGLang's wheels ask for, or newer.",
    "https://pypi.org/project/sglang/#files (0.5.10.post1 for any Linux; since 0.5.11 manylinux_2_34)",
    "practice box of Debian 11: uv finds no wheel, after the toolkits of several gigabytes were installed",
    needs=("facts",),
)
def c_library(c: Context) -> Iterator[Told]:
    """Only for distributions that the catalogue knows; on others the installer says so itself."""
    needed = c.matrix.glibc_for(c.stack.sglang)
    found = c.matrix.glibc.get(distribution_name(c.distribution))
    if needed is None or found is None or at_least(found, needed):
        return
    fitting = [name for name, version in c.matrix.glibc.items() if at_least(version, needed)]
    yield Told(
        f"{c.distribution} has glibc {found}; SGLang {c.stack.sglang} has wheels for glibc {needed} and newer only",
        f"glibc {needed} or newer",
        f"a box of {', '.join(fitting)}, or a stack of an SGLang before {c.matrix.wheel_glibc[0].sglang}",
    )


@rule(
    "cards-found",
    "error",
    "The box has the cards that the profile is for.",
    "recorded deployment: memory was computed for eight cards of 96 GB",
    needs=("card", "facts"),
)
def cards(c: Context) -> Iterator[Told]:
    """Number, compute capability, memory."""
    if not c.gpu:
        return
    card, found = c.card, c.found_cards
    told = list(_cards_told(c, card, found))
    yield from told
    silent = any(one.memory_mib is None or one.compute_capability is None for one in found)
    if silent and not told:
        raise UnknownError("facts", "a card does not tell its memory or compute capability", f"is it {card.name}?")


def _cards_told(c: Context, card: Card, found: Sequence[CardFact]) -> Iterator[Told]:
    broken = c.facts.broken_cards if c.facts else []
    if len(found) < c.card_count:
        more = f", and broken: {'; '.join(broken)}" if broken else ""
        todo = "repair those that are broken (gpubox doctor)" if broken else "give the box more cards"
        yield Told(f"{len(found)} cards{more}", f"{c.card_count} x {card.name}", f"{todo}, or another profile")
    needed = f"{card.name}: {card.compute_capability}, {card.memory_mib} MiB"
    for one in found:
        other = one.compute_capability not in {None, card.compute_capability}
        small = one.memory_mib is not None and one.memory_mib < card.memory_mib * 0.98
        if other or small:
            capability = f"compute capability {one.compute_capability or 'not known'}"
            memory = "memory not known" if one.memory_mib is None else f"{one.memory_mib} MiB"
            yield Told(f"{one.name}: {capability}, {memory}", needed, "another profile, or `cards` of this one")


@rule(
    "card-recovery",
    "error",
    "No card waits for a reset or for a reboot of its machine.",
    "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1159 (154 after 8, 119, 109: a power cycle)",
    "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (Xid 154: the recovery that a card needs)",
)
def recovery(c: Context) -> Iterator[Told]:
    """A server that is started into it fails again, and hides the first cause."""
    asked = c.facts.recovery if c.facts else None
    if not c.gpu or not asked:
        return
    yield Told(
        "; ".join(asked),
        "cards that the driver asks nothing of",
        "nothing is restarted into it: reboot or power cycle the machine that has the card, or reset the card where "
        "the line says so, then run again; gpubox doctor reads the log",
    )


@rule(
    "architecture",
    "error",
    "The box's processor is one that stacks are made for.",
    "https://github.com/unslothai/unsloth/issues/10283 (GB10: unified memory, aarch64)",
    "the lock files of all stacks: wheels of x86_64 alone",
)
def architecture(c: Context) -> Iterator[Told]:
    """Locked wheels, toolkits and driver packages are those of x86_64."""
    found = c.facts.architecture if c.facts else None
    if found in {None, "x86_64"}:
        return
    todo = "no stack for it exists yet; what `gpubox onboard` shows of the machine is right all the same"
    yield Told(f"a processor of {found}", "x86_64", todo)
