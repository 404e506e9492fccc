"""Facts: output of a host in, typed state out. The texts are what Debian 12 printed."""

import base64

import pytest

from gpubox.facts import files, packages, sections
from gpubox.facts.base import BaseFact, Sysctl
from gpubox.facts.files import Entry
from gpubox.facts.ready import ReadyFact
from gpubox.facts.service import ServiceFact

DIGEST = "0" * 64


def printed(**found: str | tuple[str, int]) -> list[str]:
    lines = []
    for name, value in found.items():
        text, code = value if isinstance(value, tuple) else (value, 0)
        lines += [f"@@gpubox@@ {name}", *text.splitlines(), "", f"@@gpubox@@ ={code}"]
    return lines


def test_sections_come_apart() -> None:
    found = sections.split(printed(a="1\n2", b=("", 2)), b=2)
    assert (found["a"].lines, found["a"].code, found["b"].lines, found["b"].code) == (["1", "2"], 0, [], 2)


def test_half_an_output_is_an_error() -> None:
    with pytest.raises(ValueError, match="section b did not end"):
        sections.split([*printed(a="1"), "@@gpubox@@ b", "x"])


def test_an_unexpected_exit_code_is_an_error() -> None:
    with pytest.raises(ValueError, match="section b ended with 3"):
        sections.split(printed(a="1", b=("", 3)), b=2)


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
    words = base64.b64encode(b"/root/ml-env/bin/python3\0-m\0a b\0").decode()
    properties = "LoadState=loaded\nActiveState=active\nMainPID=12"
    state = ServiceFact().process(printed(files="", properties=properties, argv=words, release="abc"))
    assert (state.argv, state.release, state.running) == (["/root/ml-env/bin/python3", "-m", "a b"], "abc", True)
    stopped = ServiceFact().process(printed(files="", properties="ActiveState=inactive", argv="", release=""))
    assert (stopped.argv, stopped.running) == ([], False)


@pytest.mark.parametrize(
    ("lines", "event"),
    [
        (['{"event": "phase", "phase": "start"}', '{"event": "ready", "at_s": 1}'], "ready"),
        (["Traceback ..."], "no-probe"),
        ([], "no-probe"),
    ],
)
def test_ready(lines: list[str], event: str) -> None:
    assert ReadyFact().process(lines)["event"] == event
