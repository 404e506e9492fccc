"""What apt and dpkg said when they refused, as found, needed, to do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from typing_extensions import override

from gpubox.apt.sources import bare
from gpubox.support import known_texts
from gpubox.support.data import Model
from gpubox.support.known_texts import KnownText


@dataclass(frozen=True)
class Explanation:
    """Why apt stopped, for people."""

    found: str
    needed: str
    todo: str

    @override
    def __str__(self) -> str:
        return f"{self.found}\n  needed: {self.needed}\n  to do:  {self.todo}"


@dataclass(frozen=True)
class Failure:
    """One source that could not be updated."""

    url: str
    reason: str


class Message(KnownText):
    """A text of apt, dpkg or DKMS."""

    needed: str
    """What apt would go on with."""
    early: bool = False
    """It counts before what the resolver says."""
    url: bool = False
    """The line alone may not say which source it is about."""


class Table(Model):
    """The whole file."""

    messages: list[Message]
    make_log: list[KnownText]


NOT_KNOWN = "apt to end well"
_RESOLVER = re.compile(r"^The following packages have unmet dependencies:\n(?:.*\n)*?(?=E: )E: .*$", re.M)
_FAILED = re.compile(r"^[WE]: Failed to fetch (?P<url>\S+)\s+(?P<reason>.*)$", re.M)
_REFUSED = re.compile(
    r"^[WE]: (?:GPG error: (?P<url>\S+) .*?: (?P<reason>.*)|The repository '(?P<repo>\S+) .*' (?P<why>.*))$", re.M
)


@cache
def table() -> Table:
    """The table of explain.yaml."""
    return known_texts.load(Table, Path(__file__).with_suffix(".yaml"))


def explain(output: str) -> Explanation:
    """The first known reason in what apt or dpkg printed; an unknown one is its own last lines, and no guess."""
    errors = "\n".join(re.sub("^[WE]: ", "", line) for line in output.splitlines())
    messages = table().messages
    if early := _first([message for message in messages if message.early], errors, output):
        return early
    if text := resolver(output):
        return Explanation(
            text,
            "packages that can be installed together",
            "see the holds and pins: `apt-mark showhold`, `apt-cache policy`",
        )
    if found := _first([message for message in messages if not message.early], errors, output):
        return found
    tail = "\n".join(errors.splitlines()[-5:])
    return Explanation(tail, NOT_KNOWN, "gpubox does not know this text: see its lines above")


def make_log(text: str) -> str:
    """Why DKMS could not build a module, from its make.log: cause and cure; an unknown reason is its first error line.

    Empty: the log names no error.
    """
    lines = text.splitlines()
    for known in table().make_log:
        if line := next((line for line in lines if known.expression.search(line)), None):
            return f"{known.cause} ({line.strip()}): {known.cure}"
    line = next((line for line in lines if re.search(r"\berror\b|\*\*\*", line, re.I)), "")
    return f"gpubox does not know this reason: {line.strip()}" if line else ""


def _first(messages: Sequence[Message], errors: str, output: str) -> Explanation | None:
    for message in messages:
        found = re.search(message.pattern, errors, re.M)
        if found is None:
            continue
        text = found[0].strip()
        address = _address(found, errors, output) if message.url and "://" not in text else ""
        if address:
            text = f"{text} ({address})"
        kernel = re.search(r"(?:kernel:?|for:|autoinstall on|Missing) ([0-9][\w.+~-]*)", found[0])
        log = re.search(r"/\S*make\.log", output)
        names = {
            "kernel": kernel[1] if kernel else "KERNEL",
            "log": log[0] if log else "/var/lib/dkms/nvidia/VERSION/build/make.log",
        }
        cure = " ".join(message.cure.split())
        return Explanation(text, message.needed, cure.format(**names) if "{" in cure else cure)
    return None


def _address(found: re.Match[str], errors: str, output: str) -> str:
    """The source that a line is about: the one that the lines before it name last, else the first that failed."""
    before = errors[: found.start()]
    named = re.findall(r"^(?:Err|Ign):\d+ (\S+://\S+)", before, re.M)
    if named:
        return str(named[-1])
    failed = failures(output)
    return failed[0].url if failed else ""


def resolver(output: str) -> str:
    """What the resolver said about packages that do not fit together; empty: it did not refuse."""
    found = _RESOLVER.search(output)
    if found is None or "--fix-broken" in output or "fix-broken install" in output:
        return ""
    return found[0]


def not_installable(resolver: str) -> list[str]:
    """The packages that it names as such: no source carries them, or a pin keeps them away."""
    return re.findall(r"(?:Depends: |PreDepends: )(\S+)(?: \([^)]*\))? but it is not installable", resolver)


def errors(output: str) -> str:
    """The lines that apt marks as errors; empty: there are none."""
    return "\n".join(line for line in output.splitlines() if line.startswith("E: "))


def failures(output: str) -> list[Failure]:
    """The sources that `apt-get update` could not read, each once, with the reason."""
    found: dict[str, str] = {}
    for match in _FAILED.finditer(output):
        found.setdefault(match["url"], match["reason"])
    for match in _REFUSED.finditer(output):
        found.setdefault(match["url"] or match["repo"], match["reason"] or match["why"])
    return [Failure(url, reason) for url, reason in found.items()]


def is_of(failure: Failure, uri: str) -> bool:
    """Whether the failure is of the source at `uri`."""
    return f"{bare(failure.url)}/".startswith(f"{bare(uri)}/")
