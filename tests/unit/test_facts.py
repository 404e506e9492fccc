"""Facts: output of a host in, typed state out. The texts are what Debian 12 printed."""

import base64
import json

import pytest

from gpubox.facts import files, packages, release
from gpubox.facts.base import BaseFact, Sysctl
from gpubox.facts.ready import ReadyFact
from gpubox.facts.service import ServiceFact
from gpubox.support.errors import CannotTellError
from gpubox.support.owned_file import Entry

DIGEST = "0" * 64


def printed(**found: str | tuple[str, int]) -> list[str]:
    """What a script of gpubox.facts.answers prints: name -> text, or text and exit code."""
    pairs = ((name, value if isinstance(value, tuple) else (value, 0)) for name, value in found.items())
    return [f"{name} {base64.b64encode(_packed(text, code)).decode()}" for name, (text, code) in pairs]


def _packed(text: str, code: int) -> bytes:
    return f"{text}\n{code}".encode()


def test_files() -> None:
    lines = [
        f"file\t644 root root\t{DIGEST}\t/etc/a b",
        "link\t/etc/alternatives/cuda\t\t/usr/local/cuda",
        "directory\t755 root root\t\t/opt",
        "absent\t\t\t/etc/none",
    ]
    assert files.parse(lines) == {
        "/etc/a b": Entry("file", "644", "root", "root", DIGEST),
        "/usr/local/cuda": Entry("link", target="/etc/alternatives/cuda"),
        "/opt": Entry("directory", "755", "root", "root"),
        "/etc/none": Entry("absent"),
    }


@pytest.mark.parametrize(
    ("status", "installed"),
    [("ii ", True), ("hi ", True), ("rc ", False), ("iU ", False), ("iF ", False), ("iiR", False), ("un ", False)],
)
def test_packages(status: str, installed: bool) -> None:
    assert packages.parse([f"curl\t7.88.1\t{status}"])["curl"].installed is installed


def test_base() -> None:
    state = BaseFact().process(
        printed(
            distribution="debian12",
            packages="curl\t7.88\tii ",
            timezone="/usr/share/zoneinfo/Etc/UTC",
            files="absent\t\t\t/etc/x",
            sysctls="net.core.somaxconn\trw\t4096\nvm.swappiness\tro\t60\nno.such\tabsent\t",
        )
    )
    assert (state.distribution, state.timezone) == ("debian12", "Etc/UTC")
    assert state.sysctls["vm.swappiness"] == Sysctl("ro", "60")
    assert state.sysctls["no.such"] == Sysctl("absent", "")


def test_service() -> None:
    about = {"digest": "abc", "verified": "2026-11-29T16:00:00+00:00"}
    found = {"current": "abc", "previous": None, "unit": "abc", "runs": "abc", "linked": True, "releases": [about]}
    properties = "UnitFileState=enabled\nNeedDaemonReload=no"
    state = ServiceFact().process(printed(files="", properties=properties, releases=json.dumps(found)))
    assert (state.serves("abc"), state.serves("other"), state.releases.is_verified("abc")) == (True, False, True)
    for key, value in {"unit": None, "runs": None, "current": "other", "linked": False}.items():
        other = printed(files="", properties=properties, releases=json.dumps({**found, key: value}))
        assert not ServiceFact().process(other).serves("abc"), key
    for wrong in ("UnitFileState=disabled\nNeedDaemonReload=no", "UnitFileState=enabled\nNeedDaemonReload=yes"):
        assert not ServiceFact().process(printed(files="", properties=wrong, releases=json.dumps(found))).serves("abc")


def test_a_box_without_releases() -> None:
    properties = "UnitFileState=\nNeedDaemonReload=no"
    state = ServiceFact().process(printed(files="", properties=properties, releases="{}"))
    assert (state.releases.current, state.serves("abc"), state.releases.one("abc")) == (None, False, {})


def test_releases_that_cannot_be_read() -> None:
    with pytest.raises(CannotTellError):
        release.parse("Traceback")


@pytest.mark.parametrize(
    ("lines", "event"),
    [
        (['{"event": "phase", "phase": "import"}', '{"event": "ready", "at_s": 1}'], "ready"),
        (["Traceback ..."], "no-probe"),
        ([], "no-probe"),
    ],
)
def test_ready(lines: list[str], event: str) -> None:
    assert ReadyFact().process(lines)["event"] == event
