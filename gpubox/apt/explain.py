"""What apt and dpkg said when they refused, as found, needed, to do."""

import re
from dataclasses import dataclass

from typing_extensions import override

from gpubox.apt.sources import bare


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


_NETWORK = (
    "Could not resolve",
    "Could not connect",
    "Temporary failure resolving",
    "Connection (?:failed|refused|timed out|reset|closed)",
    "Error reading from server",
    "Undetermined Error",
    "Bad Gateway",
    "Gateway Time-?out",
    "Proxy",
)
_TABLE = (
    (
        r"(?:Could not get lock|Unable to (?:acquire the dpkg frontend )?lock|dpkg: error: .*lock was locked).*",
        "the package database for us alone",
        "wait for that process to end, or find out why it hangs; never delete the lock file",
    ),
    (
        r"Conflicting values set for option .*",
        "one entry for each source",
        "keep one of the two files in /etc/apt/sources.list.d and disable the other",
    ),
    (
        r"Malformed (?:entry|stanza|line).*",
        "sources that apt can read",
        "correct or remove that file",
    ),
    (
        r".*(?:No space left on device|enough free space).*",
        "room for the packages",
        "`df -h / /var`, free some (`apt-get clean`), run again: what dpkg left half-way is completed then",
    ),
    (
        r".*(?:Hash Sum mismatch|File has unexpected size|Mirror sync in progress|Hashes of expected file).*",
        "files that are what the signed list says",
        "a mirror or proxy gave an old or changed file: run again in some minutes, or choose another mirror",
    ),
    (
        r".*(?:SHA1 is not considered secure|Policy rejected).*",
        "a key that is bound with SHA-256 or better (Debian 13's apt refuses older ones)",
        "take the keyring of this distribution's own repository (cuda.source), not that of an older one",
    ),
    (
        r".*(?:EXPKEYSIG|KEYEXPIRED|EXPSIG).*",
        "a signing key that is valid",
        "the key of that source has expired: install its present keyring package",
    ),
    (
        r".*NO_PUBKEY.*",
        "the key that the source is signed with now",
        "the key was changed or never installed: install the source's present keyring package (cuda.source.keyring)",
    ),
    (
        r".*(?:is not valid yet|Release file for .* is expired).*",
        "a list whose dates fit the clock",
        "compare `date` on the box; if it is right, the mirror is stale",
    ),
    (
        r"Held packages were changed.*",
        "packages that nobody holds",
        "`apt-mark showhold`, then `apt-mark unhold` what may move",
    ),
    (
        r"Packages were downgraded.*",
        "an exact version in the data, which allows it",
        "name the version in cuda.exact, or remove the newer package",
    ),
    (
        r".*(?:dpkg was interrupted|Unmet dependencies).*",
        "a dpkg that is whole",
        "run the deploy again: its step `apt` completes what was interrupted",
    ),
    (
        r".*(?:has no installation candidate|Unable to locate package|Version '.*' for '.*' was not found).*",
        "a source that carries it",
        "`apt-cache policy PACKAGE` on the box: name, version, a pin of priority -1, or a source that is missing",
    ),
    (
        f".*(?:{'|'.join(_NETWORK)}).*",
        "a connection to the source",
        "try `curl -I` of that URL on the box; see the proxy settings (`apt-config dump | grep -i proxy`); run again",
    ),
    (
        r".*404 .*",
        "a file that the source has",
        "its path is wrong, or the source has moved on since its list was read: run again",
    ),
)
_RESOLVER = re.compile(r"^The following packages have unmet dependencies:\n(?:.*\n)*?(?=E: )E: .*$", re.M)
_FAILED = re.compile(r"^[WE]: Failed to fetch (?P<url>\S+)\s+(?P<reason>.*)$", re.M)
_REFUSED = re.compile(
    r"^[WE]: (?:GPG error: (?P<url>\S+) .*?: (?P<reason>.*)|The repository '(?P<repo>\S+) .*' (?P<why>.*))$", re.M
)


def explain(output: str) -> Explanation:
    """The first known reason in what apt or dpkg printed; an unknown one is its own last lines."""
    errors = "\n".join(re.sub("^[WE]: ", "", line) for line in output.splitlines())
    for pattern, needed, todo in _TABLE[:4]:
        if found := re.search(pattern, errors, re.M):
            return Explanation(found[0].strip(), needed, todo)
    if text := resolver(output):
        return Explanation(
            text,
            "packages that can be installed together",
            "see the holds and pins: `apt-mark showhold`, `apt-cache policy`",
        )
    for pattern, needed, todo in _TABLE[4:]:
        if found := re.search(pattern, errors, re.M):
            return Explanation(found[0].strip(), needed, todo)
    tail = "\n".join(errors.splitlines()[-5:])
    return Explanation(tail, "apt to end well", "see its lines above")


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
