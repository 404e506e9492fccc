"""The order of versions: Python's own (PEP 440) for what is released in numbers, Debian's own for its packages.

Who compares what: releases of SGLang and of Python packages, of CUDA (12.8), of the driver (580.159.04) and of
distributions (24.04) are PEP 440; packages (590.44.01-1, 1:2.0~rc1-1) and kernels (6.8.12-4-pve) are Debian's.
On a box nothing compares versions by their order, only whether they are the same.
"""

import re

from debian.debian_support import BaseVersion as DebianVersion
from debian.debian_support import NativeVersion
from packaging.version import InvalidVersion, Version

from gpubox.support.errors import CannotTellError

_NOT_DEBIAN = re.compile(r"[^A-Za-z0-9.+:~-]")


def key(version: str) -> Version:
    """Sorts by PEP 440: 1.0.dev1 < 1.0rc1 < 1.0 < 1.0+cu130 < 1.0.post1 < 1!0.1.

    Error: cannot tell, for another form.
    """
    try:
        return Version(version)
    except InvalidVersion as error:
        raise CannotTellError(f"the version {version!r} cannot be compared", "one as 0.5.9 or 0.5.10rc0") from error


def at_least(version: str, floor: str) -> bool:
    """Whether a version is the floor or newer, by PEP 440: a release candidate is older than its release."""
    return key(version) >= key(floor)


def package_key(version: str) -> DebianVersion:
    """Sorts by Debian's rules (deb-version(7)): an epoch first, ~ before nothing, numbers by their value.

    What Debian would not allow in a version, as the underscore of a kernel that somebody built, counts as +.
    Error: cannot tell, for what is no version at all.
    """
    try:
        return NativeVersion(_NOT_DEBIAN.sub("+", version))
    except ValueError as error:
        raise CannotTellError(f"the version {version!r} cannot be compared", "one as 6.8.12-4-pve") from error


def package_at_least(version: str, floor: str) -> bool:
    """Whether a package or kernel is of that version or of a newer one."""
    return bool(package_key(version) >= package_key(floor))
