"""Apt: sources, keys, what it says when it refuses (texts that Debian 12 printed), and what is done about it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyinfra.api import FileUploadCommand
from pyinfra.api.command import FunctionCommand

from gpubox.apt import explain, judge, keys, sources
from gpubox.apt.explain import Failure
from gpubox.apt.sources import Conflict, Source
from gpubox.facts.apt import AptFact, AptState, Holder
from gpubox.facts.packages import Package
from gpubox.operations import apt, packages
from gpubox.support import paths
from tests.unit.test_facts import printed

CASES = paths.root() / "tests" / "cases" / "apt"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"
LIST, SOURCES = "/etc/apt/sources.list.d/a.list", "/etc/apt/sources.list.d/b.sources"
OURS = "/etc/apt/sources.list.d/gpubox-cuda.sources"

DEB822 = f"""# a note
Types: deb
URIs: http://deb.debian.org/debian
  {CUDA}
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Enabled: no
Types: deb
URIs: http://off.test/
Suites: /
"""


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (LIST, f"deb {CUDA} /\n", [Source(LIST, CUDA, "/", (), "")]),
        (
            LIST,
            f"deb [arch=amd64 signed-by=/k.gpg] {CUDA} / # new\n",
            [Source(LIST, CUDA, "/", (), "/k.gpg")],
        ),
        (LIST, f"# deb {CUDA} /\n", []),
        (LIST, "deb http:\n", []),
        (
            LIST,
            "deb-src http://x.test/ bookworm main non-free\n",
            [Source(LIST, "http://x.test/", "bookworm", ("main", "non-free"), "")],
        ),
        (
            SOURCES,
            DEB822,
            [
                Source(SOURCES, uri, suite, ("main", "contrib"), "/usr/share/keyrings/debian.gpg")
                for uri in ("http://deb.debian.org/debian", CUDA)
                for suite in ("bookworm", "bookworm-updates")
            ],
        ),
        (
            SOURCES,
            "Types: deb\nURIs: http://x.test\nSuites: /\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n",
            [Source(SOURCES, "http://x.test", "/", (), "(embedded)")],
        ),
    ],
)
def test_sources(path: str, text: str, found: list[Source]) -> None:
    assert sources.parse(path, text) == found


@pytest.mark.pain("P21")
def test_conflicts_are_what_apt_would_refuse() -> None:
    one, other = Source(LIST, CUDA, "/", (), "/k.gpg"), Source(SOURCES, CUDA.rstrip("/"), "/", (), "")
    assert sources.conflicts([one, other]) == [Conflict(CUDA.rstrip("/"), "/", ((LIST, "/k.gpg"), (SOURCES, "")))]
    assert sources.conflicts([one, replace(one, signed_by="")])[0].signed_by == ((LIST, "/k.gpg"), (LIST, ""))
    assert sources.conflicts([one, replace(other, signed_by="/k.gpg")]) == []
    assert sources.conflicts([one, replace(other, suite="x/")]) == []


@pytest.mark.parametrize(
    ("path", "text", "rest"),
    [
        (LIST, f"deb {CUDA} /\n# by hand\n", None),
        (LIST, f"deb http://x.test/ a main\ndeb [signed-by=/k] {CUDA} /\n", "deb http://x.test/ a main\n"),
        (SOURCES, f"Types: deb\nURIs: {CUDA}\nSuites: /\n", None),
        (
            SOURCES,
            f"Types: deb\nURIs: http://x.test {CUDA}\nSuites: /\n",
            "Types: deb\nURIs: http://x.test\nSuites: /\n\n",
        ),
    ],
)
@pytest.mark.pain("P21")
def test_a_file_without_one_source(path: str, text: str, rest: str | None) -> None:
    assert sources.without(path, text, CUDA.replace("https", "http")) == rest


@pytest.mark.parametrize(
    ("name", "expires", "weak"),
    [("valid", None, ""), ("expired", datetime(2024, 6, 1, 12, tzinfo=UTC), ""), ("sha1", None, "SHA-1")],
)
@pytest.mark.pain("P22")
def test_keys(name: str, expires: datetime | None, weak: str) -> None:
    (key,) = keys.parse((CASES / f"{name}.gpg").read_bytes())
    assert (key.expires, key.weak_digest, len(key.fingerprint)) == (expires, weak, 40)


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x99\x01"])
def test_no_keyring(data: bytes) -> None:
    assert judge.keyring(data, "A" * 40, "debian12", datetime.now(UTC)) is not None


def test_explained() -> None:
    """Each file holds what apt or dpkg printed; its first line is what of it the explanation must begin with."""
    for case in sorted(CASES.glob("*.txt")):
        first, _, output = case.read_text().partition("\n")
        found = explain.explain(output)
        assert found.found.startswith(first.removeprefix("# ")), case.name
        assert found.needed != "apt to end well", case.name


def test_what_is_not_known_is_shown_as_it_is() -> None:
    told = explain.explain("a\nE: Something new\n")
    assert told.found == "a\nSomething new"
    assert "does not know" in told.todo


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("dkms-build", ["6.17.9-76061709-generic", "/var/lib/dkms/nvidia/580.119.02/build/make.log", "newer driver"]),
        ("dkms-headers", ["linux-headers-6.8.12-9-pve", "proxmox-headers-6.8.12-9-pve"]),
        ("not-signed", ["http://repo.example/debian", "Signed-By", "subscription"]),
        ("no-release", ["repos/debian14/x86_64", "Release", "not made for this"]),
        ("enterprise", ["https://enterprise.proxmox.com/debian/pve", "pve-no-subscription"]),
        ("enterprise-alone", ["https://enterprise.proxmox.com/debian/pve", "pve-no-subscription"]),
        ("proxy-login", ["http://deb.debian.org", "Acquire::http::Proxy"]),
        ("tls", ["https://download.example/repo", "ca-certificates", "`date`"]),
        ("clock", ["timedatectl"]),
        ("expired-release", ["mirror is stale"]),
        ("hash", ["http://mirror.example", "another mirror"]),
        ("overwrite", ["libnvidia-compute-580", "driver.source"]),
        ("held-change", ["apt-mark showhold"]),
    ],
)
def test_an_explanation_names_what_and_where(case: str, words: list[str]) -> None:
    told = str(explain.explain((CASES / f"{case}.txt").read_text().partition("\n")[2]))
    assert [word for word in words if word not in " ".join(told.split())] == []


@pytest.mark.parametrize("distribution", ["debian13", "ubuntu2604"])
@pytest.mark.pain("P99")
def test_a_source_that_sqv_refuses_is_refused_before_and_explained_after(distribution: str) -> None:
    """NVIDIA's debian12 and ubuntu2404 repositories, and cuda-keyring 1.1, whose key only SHA-1 binds."""
    told = judge.keyring((CASES / "sha1.gpg").read_bytes(), None, distribution, datetime(2026, 12, 1, tzinfo=UTC))
    assert told is not None
    assert "SHA-1" in told.found
    after = explain.explain((CASES / "sqv.txt").read_text().partition("\n")[2])
    assert "repos/debian12/x86_64" in after.found
    assert "keyring of this distribution's own repository" in after.todo


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("fatal error: /lib/modules/6.2.6/build/include/linux/autoconf.h: No such file or directory", "headers"),
        ("nvidia-drm-drv.c:200:3: error: implicit declaration of function 'drm_fb_helper'", "too old for this kernel"),
        ("nv.c:5: error: 'struct drm_driver' has no member named 'date'", "too old for this kernel"),
        (
            "FATAL: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'x'",
            "open kernel modules",
        ),
        ("/bin/sh: 1: gcc-14: not found", "another compiler"),
        ("fatal error: error writing to /tmp/x.s: No space left on device", "disk is full"),
        ("x.c:1: error: something that nobody met before", "does not know this reason: x.c:1: error: something"),
        ("  CC [M]  nv.o\n", ""),
    ],
)
def test_dkms_own_log(log: str, said: str) -> None:
    assert said in explain.make_log(f"DKMS make.log for nvidia-580 for kernel 6.17.9 (x86_64)\n{log}")
    assert bool(explain.make_log(log)) is bool(said)


@pytest.mark.pain("P25")
def test_the_resolvers_own_text() -> None:
    text = explain.resolver((CASES / "resolver.txt").read_text())
    assert text.startswith("The following packages have unmet dependencies:\n libcuda1 : Depends: nvidia-alternative")
    assert text.endswith("you have held broken packages.")
    assert explain.resolver((CASES / "interrupted.txt").read_text()) == ""
    assert explain.resolver((CASES / "fix-broken.txt").read_text()) == ""


def test_packages_that_may_come_with_another_source() -> None:
    text = " a : Depends: b (= 1) but it is not installable or\n   c but it is not installable\n d : Depends: e\n"
    assert explain.not_installable(text) == ["b"]


@pytest.mark.parametrize(
    ("case", "failures"),
    [
        ("no-key", [Failure("http://10.87.0.10:8080/cuda/debian12/x86_64", "NO_PUBKEY")]),
        ("refused", [Failure("http://127.0.0.1:9/debian/dists/bookworm/InRelease", "Could not connect")]),
        ("not-found", [Failure("http://10.87.0.10:8080/nothing/Packages", "404  File not found")]),
    ],
)
def test_sources_that_cannot_be_read(case: str, failures: list[Failure]) -> None:
    found = explain.failures((CASES / f"{case}.txt").read_text())
    assert [f.url for f in found] == [f.url for f in failures]
    assert all(wanted.reason in one.reason for one, wanted in zip(found, failures, strict=True))


@pytest.mark.parametrize(
    ("case", "ours", "goes_on"),
    [
        ("refused", "http://10.87.0.10:8080/cuda/debian12/x86_64/", True),
        ("no-key", "http://10.87.0.10:8080/cuda/debian12/x86_64/", False),
        ("not-found", "https://10.87.0.10:8080/nothing", False),
        ("conflict", "http://other.test/", False),
    ],
)
def test_only_our_own_source_ends_the_update(
    case: str, ours: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt, "host", FakeHost())
    judge_it = apt.update([ours]).args[2]
    assert judge_it(False, (CASES / f"{case}.txt").read_text()) is goes_on


class FakeHost:
    print_prefix = "[box] "
    name = "box"


FINE = AptState("debian12", {}, {}, False, False, [], {})


def texts(commands: Iterator[Any]) -> list[str]:
    found = []
    for command in commands:
        raw = command.args[0] if isinstance(command, FunctionCommand) else command
        found.append(f"put {raw.dest}" if isinstance(raw, FileUploadCommand) else raw.get_raw_value())
    return found


def test_the_fact() -> None:
    state = AptFact().process(
        printed(
            distribution="debian12",
            sources="ZGViIGh0dHA6Ly94LnRlc3QvIC8K\t/etc/apt/sources.list.d/a b.list",
            unsettled="iU \tcurl\niHR\tgcc",
            interrupted="1",
            unmet="E: Unmet dependencies. Try 'apt --fix-broken install'",
            holders="12\tapt-get install x ",
            keyrings="",
        )
    )
    assert state == AptState(
        "debian12",
        {"/etc/apt/sources.list.d/a b.list": "deb http://x.test/ /\n"},
        {"curl": "iU", "gcc": "iHR"},
        True,
        True,
        [Holder(12, "apt-get install x")],
        {},
    )


@pytest.mark.parametrize(
    ("state", "parts"),
    [
        (FINE, []),
        (replace(FINE, interrupted=True), ["--configure -a", "--fix-broken", "--configure -a"]),
        (replace(FINE, unsettled={"a": "iU"}), ["--configure -a", "--fix-broken", "--configure -a"]),
        (replace(FINE, unmet=True), ["--configure -a", "update", "--fix-broken", "--configure -a"]),
        (
            replace(FINE, unsettled={"a": "iHR"}),
            ["--configure -a", "update", "--reinstall --no-install-recommends a", "--fix-broken", "--configure -a"],
        ),
    ],
)
def test_what_was_interrupted_is_completed(state: AptState, parts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "host", FakeHost())
    commands = texts(apt.whole._inner(look=lambda: state))
    assert len(commands) == len(parts)
    assert all(part in command for part, command in zip(parts, commands, strict=True))


def test_a_lock_that_nobody_holds_is_not_waited_for() -> None:
    assert texts(apt.unlocked._inner(limit_s=5, look=lambda: FINE)) == []
    held = replace(FINE, holders=[Holder(12, "apt-get install x")])
    (command,) = apt.unlocked._inner(limit_s=5, look=lambda: held)
    assert "12 (apt-get install x)" in command.args[1]


@pytest.mark.pain("P21")
def test_one_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "host", FakeHost())
    own = "/etc/apt/sources.list.d/cuda-debian12-x86_64.list"
    there = {LIST: f"deb {CUDA} /\ndeb http://x.test/ a\n", OURS: f"Types: deb\nURIs: {CUDA}\nSuites: /\n", own: "x"}

    def commands(present: dict[str, str]) -> list[str]:
        state = replace(FINE, sources=present)
        return texts(apt.one_owner._inner(uri=CUDA, owner=OURS, own_lists=[own], look=lambda: state))

    assert commands({OURS: there[OURS], LIST: "deb http://x.test/ a\n"}) == []
    found = commands(there)
    assert [c for c in found if c.startswith("put ")][1] == f"put {LIST}.gpubox-new"
    assert found[-1] == f"rm -f {own}"
    assert sum(c.startswith(f"put {apt.ASIDE}/") for c in found) == 2


@pytest.mark.parametrize(
    ("wish", "package", "options"),
    [
        ("a", None, []),
        ("a=1", None, ["--allow-downgrades"]),
        ("a=1", Package("2", "hi "), ["--allow-change-held-packages", "--allow-downgrades"]),
    ],
)
@pytest.mark.pain("P25")
def test_what_the_data_names_may_be_moved(wish: str, package: Package | None, options: list[str]) -> None:
    assert packages._options([wish], {"a": package} if package else {}) == options
