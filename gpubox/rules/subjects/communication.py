"""How cards talk to each other: all-reduce, NCCL, peer-to-peer."""

from collections.abc import Iterator

from gpubox.nccl.levels import DEFAULT, LEVELS, rank
from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule
from gpubox.support.versions import at_least

_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_CUSTOM_RANKS = (2, 4, 6, 8)
"""Sizes of a group that custom all-reduce works for (custom_all_reduce.py of the wheels)."""
_SHARED_FROM = "0.5.14"
_FUSION = ("enable-flashinfer-allreduce-fusion", "flashinfer-allreduce-fusion-backend")


@rule(
    "all-reduce-fusion",
    "error",
    "Fused all-reduce is asked for only where it has kernels: SM90 and SM100.",
    "recorded deployment: made to run on SM120, it dropped throughput to 236 tok/s and was reverted",
    "https://github.com/sgl-project/sglang/issues/15650 (capture fails: no supported architectures)",
    needs=("release", "card"),
    refutable=True,
)
def fusion(c: Context) -> Iterator[Told]:
    """By the old flag or the new one."""
    for flag in _FUSION:
        if c.spec(flag) and c.on(flag) and c.gpu and not c.card.all_reduce_fusion:
            yield Told(f"--{flag} on {c.card.name}", "no fused all-reduce on this card", "take it out")


@rule(
    "expandable-segments",
    "error",
    "Expandable segments and custom all-reduce are not used together.",
    "https://github.com/local-inference-lab/rtx6kpro (memory of expandable segments cannot be shared by CUDA IPC)",
    "https://github.com/sgl-project/sglang/issues/40432 (more than two cards on PCIe: SGLang leaves it out by itself)",
    "read in the wheels: off for more than two cards without NVLink, and for other numbers of cards than 2, 4, 6, 8",
    "read in the wheels: from 0.5.14 on, cards with NVLink share such memory another way",
    needs=("release", "card"),
)
def expandable(c: Context) -> Iterator[Told]:
    """Only where SGLang itself takes custom all-reduce."""
    names = [name for name in _ALLOCATOR if "expandable_segments:True" in c.environment.get(name, "")]
    ranks = c.size("tp-size")
    if not names or not c.gpu or c.on("disable-custom-all-reduce") or ranks not in _CUSTOM_RANKS or c.seen_running:
        return
    if ranks > 2 and not c.card.nvlink:
        return
    if c.card.nvlink and _shares_expandable(c):
        return
    found = f"{names[0]} has expandable_segments:True, and custom all-reduce is on"
    needed = "--disable-custom-all-reduce, or ordinary segments"
    if c.card.nvlink:
        yield Told(found, needed, "take one of them out")
    else:  # two cards on PCIe: SGLang leaves it out where it finds no peer-to-peer
        yield Told(f"{found} where the two cards have peer-to-peer", needed, "take one of them out", "warning")


@rule(
    "place",
    "error",
    "A profile is used where its settings for communication between cards are right.",
    "recorded deployments: no peer-to-peer in the VM, full peer-to-peer in the container of the same machine",
    needs=("facts",),
)
def place(c: Context) -> Iterator[Told]:
    """`runs_on` of the profile, against the box."""
    if c.profile.runs_on and c.place not in c.profile.runs_on:
        yield Told(
            f"profile {c.profile.name} is for {', '.join(c.profile.runs_on)}; this box is {c.place}",
            "",
            "another profile",
        )


@rule(
    "vm-peer-to-peer",
    "error",
    "In a VM, nothing relies on peer-to-peer between cards.",
    "recorded deployment: no peer-to-peer in the VM, every transfer goes through host memory",
    "https://github.com/NVIDIA/nccl/issues/2335 (a VM advertises peer-to-peer that reads zeros)",
    needs=("release", "facts"),
)
def vm(c: Context) -> Iterator[Told]:
    """Custom all-reduce is off and NCCL is told."""
    if not c.gpu or c.size("tp-size") < 2 or c.place != "vm":
        return
    if not c.on("disable-custom-all-reduce"):
        yield Told("custom all-reduce is on in a VM", "--disable-custom-all-reduce", "add it")
    if c.environment.get("NCCL_P2P_DISABLE") == "1":
        return
    level = _level(c)
    if level is None or level > LEVELS.index("PHB"):
        found = f"NCCL_P2P_LEVEL={c.environment.get('NCCL_P2P_LEVEL', '')} in a VM lets NCCL use peer-to-peer"
        yield Told(found, "NCCL_P2P_DISABLE=1", "set it")
    else:
        found = "NCCL may still use peer-to-peer between some cards of the VM, and nobody checked what it reads"
        yield Told(found, "NCCL_P2P_DISABLE=1, or a measurement that data goes right", "set it", "warning")


@rule(
    "nccl-level",
    "error",
    "NCCL_P2P_LEVEL has a value that NCCL knows.",
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-p2p-level",
)
def level(c: Context) -> Iterator[Told]:
    """A word, or an old-style number."""
    given = c.environment.get("NCCL_P2P_LEVEL")
    if given and _level(c) is None:
        yield Told(f"NCCL_P2P_LEVEL={given}", f"one of: {', '.join(LEVELS)}, or a number", "correct it")


@rule(
    "peer-to-peer-measured",
    "warning",
    "Settings for peer-to-peer follow what was measured on the box.",
    "recorded deployments: the same machine had none as VM and all as container",
    "https://github.com/NVIDIA/nccl/issues/2079 (hangs at start where access control services are in the way)",
    needs=("release", "facts"),
)
def measured(c: Context) -> Iterator[Told]:
    """Both ways: used but broken, working but unused."""
    if not c.gpu or c.size("tp-size") < 2:
        return
    off = c.environment.get("NCCL_P2P_DISABLE") == "1"
    if not c.p2p and not (off and c.on("disable-custom-all-reduce")):
        todo = "set both, or repair it (IOMMU, ACS, driver options)"
        needed = "NCCL_P2P_DISABLE=1 and --disable-custom-all-reduce"
        yield Told("peer-to-peer between the cards does not work, but the profile uses it", needed, todo, "error")
    if c.p2p and off:
        yield Told("peer-to-peer works here, and NCCL_P2P_DISABLE=1 keeps NCCL from it", "", "take it out, and measure")


def _shares_expandable(c: Context) -> bool:
    newer = at_least(c.release.sglang, _SHARED_FROM)
    return newer and c.environment.get("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", "1") not in {"0", "false", "False"}


def _level(c: Context) -> int | None:
    """Rank in LEVELS; None: not a level."""
    return rank(c.environment.get("NCCL_P2P_LEVEL", DEFAULT))
