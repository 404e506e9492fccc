"""The order of versions: PEP 440 for releases, Debian's for packages and kernels."""

import itertools
import shutil
import subprocess

import pytest

from gpubox.support.errors import CannotTellError
from gpubox.support.versions import at_least, key, package_at_least, package_key

RELEASES = [
    *("0.5.9", "0.5.10.dev1", "0.5.10a1", "0.5.10b2", "0.5.10rc0", "0.5.10rc1", "0.5.10", "0.5.10+cu128"),
    *("0.5.10+cu130", "0.5.10.post1.dev1", "0.5.10.post1", "0.5.10.1", "0.6", "0.10.0", "12.8", "12.10"),
    *("580.65.06", "580.159.04", "1!0.1"),
]
"""Oldest first."""
PACKAGES = [
    *("0~rc1-1", "0", "1.0~~", "1.0~beta1-1", "1.0~rc1-1", "1.0-1", "1.0-1+deb12u1", "1.0-1.1", "1.0-2", "1.0-10"),
    *("1.0+dfsg-1", "1.0.1-1", "590.44.01-1", "590.44.01-1ubuntu1", "590.144.01-1", "1:0.9-1"),
]
KERNELS = ["5.15.0-9-generic", "5.15.0-122-generic", "6.5.11-7-pve", "6.8.8-2-pve", "6.8.12-4-pve", "6.8.12-10-pve"]


@pytest.mark.parametrize(("older", "newer"), [*itertools.combinations(RELEASES, 2)])
def test_releases(older: str, newer: str) -> None:
    assert at_least(newer, older)
    assert not at_least(older, newer)
    assert at_least(older, older)


@pytest.mark.parametrize(("older", "newer"), [*itertools.combinations(PACKAGES, 2)])
def test_packages(older: str, newer: str) -> None:
    assert package_at_least(newer, older)
    assert not package_at_least(older, newer)


def test_kernels() -> None:
    assert sorted({*KERNELS}, key=package_key) == KERNELS
    assert package_at_least("6.17.0_custom", "6.5")


def test_one_and_the_same() -> None:
    assert key("1.0") == key("1.0.0") == key("v1.0")
    assert package_key("0:1.0-1") == package_key("1.0-1")


@pytest.mark.parametrize("version", ["", "new", "590.44.01-1ubuntu1", "6.8.12-4-pve"])
def test_another_form_cannot_be_told(version: str) -> None:
    with pytest.raises(CannotTellError, match="cannot be compared"):
        at_least(version, "1")


def test_no_version_at_all_is_no_package_either() -> None:
    with pytest.raises(CannotTellError, match="cannot be compared"):
        package_key("")


@pytest.mark.parametrize(("one", "other"), [*itertools.pairwise([*PACKAGES, *KERNELS])])
def test_dpkg_says_the_same(one: str, other: str) -> None:
    dpkg = shutil.which("dpkg")
    assert dpkg is not None, "these tests run where the product's boxes run: on Debian"
    newer = subprocess.run([dpkg, "--compare-versions", one, "ge", other], check=False).returncode == 0
    assert package_at_least(one, other) == newer
