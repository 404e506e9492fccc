"""Values of NCCL_P2P_LEVEL, as NCCL reads them (src/graph/paths.cc): words in capitals, or numbers of old."""

LEVELS = ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS")
"""From never to always: peer-to-peer is used between cards whose link is at most that far."""
DEFAULT = "PXB"
"""What NCCL takes where nothing is set (two cards on an AMD processor: SYS)."""
_OLD = ("LOC", "PIX", "PXB", "PHB", "SYS")
"""The numbers before there were words, from 0; every higher one means SYS too."""


def rank(value: str) -> int | None:
    """Place in LEVELS; None: NCCL does not know the value, and passes over it."""
    if value.isdecimal() and len(value) < 10:
        return LEVELS.index(_OLD[min(int(value), len(_OLD) - 1)])
    return LEVELS.index(value) if value in LEVELS else None
