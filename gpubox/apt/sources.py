"""The sources that apt reads, one-line and deb822, and who owns which.

Two entries for one URI and suite with different Signed-By stop all of apt, also for packages from elsewhere:
https://github.com/NVIDIA/cuda-repo-management/issues/4
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_ONE_LINE = re.compile(r"^\s*deb(?:-src)?\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<rest>[^#]*)")


@dataclass(frozen=True)
class Source:
    """One URI with one suite, as one entry of one file names it."""

    file: str
    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str
    """Path or fingerprint; `(embedded)`: the key itself stands there; empty: none is named."""


@dataclass(frozen=True)
class Conflict:
    """Entries for one URI and suite that name different keys."""

    uri: str
    suite: str
    signed_by: tuple[tuple[str, str], ...]
    """Files with the key that each names; one file may name two."""


def parse(path: str, text: str) -> list[Source]:
    """The entries of one file that are in use; what apt could not read either is left out."""
    if path.endswith(".sources"):
        return [source for stanza in _stanzas(text) for source in _of_stanza(path, stanza)]
    return [source for line in text.splitlines() for source in _of_line(path, line)]


def conflicts(sources: Iterable[Source]) -> list[Conflict]:
    """What apt would refuse as `Conflicting values set for option Signed-By`."""
    named: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for source in sources:
        named.setdefault((_plain(source.uri), source.suite), {})[source.file, source.signed_by] = None
    return [Conflict(uri, suite, tuple(by)) for (uri, suite), by in named.items() if len({key for _, key in by}) > 1]


def is_same(one: str, other: str) -> bool:
    """Whether two URIs are the same repository, by http or https."""
    return bare(one) == bare(other)


def bare(uri: str) -> str:
    """The URI without its scheme and last slash, to compare by."""
    return re.sub("^https?:", "", _plain(uri))


def competing(files: Mapping[str, str], uri: str, owner: str) -> list[str]:
    """Files besides `owner` that also name `uri`. + files: path -> text."""
    others = ((path, text) for path, text in files.items() if path != owner)
    return [path for path, text in others if any(is_same(source.uri, uri) for source in parse(path, text))]


def without(path: str, text: str, uri: str) -> str | None:
    """The file without its entries for `uri`; None: nothing else is in it."""
    kept = _stanzas_without(path, text, uri) if path.endswith(".sources") else _lines_without(path, text, uri)
    return kept if parse(path, kept) else None


def _of_line(path: str, line: str) -> list[Source]:
    found = _ONE_LINE.match(line)
    if found is None:
        return []
    options = dict(pair.split("=", 1) for pair in (found["options"] or "").split() if "=" in pair)
    signed_by = options.get("signed-by", options.get("Signed-By", ""))
    return [Source(path, found["uri"], found["suite"], tuple(found["rest"].split()), signed_by)]


def _of_stanza(path: str, stanza: str) -> list[Source]:
    fields = _fields(stanza)
    if fields.get("enabled", "yes").lower() in {"no", "false", "0", "off", "without", "disable"}:
        return []
    signed_by = fields.get("signed-by", "")
    key = "(embedded)" if "BEGIN PGP" in signed_by else signed_by
    components = tuple(fields.get("components", "").split())
    uris, suites = fields.get("uris", "").split(), fields.get("suites", "").split()
    return [Source(path, uri, suite, components, key) for uri in uris for suite in suites]


def _fields(stanza: str) -> dict[str, str]:
    """Name in small letters -> value, its further lines joined to it."""
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in {" ", "\t"} and name:
            fields[name] += "\n" + line.strip()
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _stanzas(text: str) -> list[str]:
    return [stanza for stanza in re.split(r"\n[ \t]*\n", text) if stanza.strip()]


def _lines_without(path: str, text: str, uri: str) -> str:
    lines = (line for line in text.splitlines() if not any(is_same(s.uri, uri) for s in _of_line(path, line)))
    return "".join(f"{line}\n" for line in lines)


def _stanzas_without(path: str, text: str, uri: str) -> str:
    """A stanza that names other URIs too keeps those."""
    kept = []
    for stanza in _stanzas(text):
        uris = _fields(stanza).get("uris", "").split()
        others = [each for each in uris if not is_same(each, uri)]
        if len(others) == len(uris):
            kept.append(stanza.strip("\n"))
        elif others:
            kept.append(re.sub(r"(?im)^uris:.*(?:\n[ \t].*)*", f"URIs: {' '.join(others)}", stanza.strip("\n")))
    return "".join(f"{stanza}\n\n" for stanza in kept)


def _plain(uri: str) -> str:
    return uri.rstrip("/")
