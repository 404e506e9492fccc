"""Compare versions as they are written here: 0.5.15.post1, 12.8, 580.159.04."""

import re


def key(version: str) -> tuple[int, ...]:
    """Sorts as a person would: 0.5.9 < 0.5.10 < 0.5.10.post1; a local part (+cu130) is left out."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0]))


def at_least(version: str, floor: str) -> bool:
    """Whether a version is the floor or newer."""
    return key(version) >= key(floor)
