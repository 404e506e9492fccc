"""Proxies in the server's environment: what must never go through one, and what a client makes of
an exception.

SGLang asks itself over HTTP while it starts (/get_model_info, then a warm-up). With a proxy in its
environment that question goes to the proxy, comes back as 403 or 502, and the server ends
(sgl-project/sglang#9814, #4935, #9155).
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence

from gpubox.hosts import Box

LOCAL = ("127.0.0.1", "localhost", "0.0.0.0", "::1")  # noqa: S104 - as a name in a list, nothing is bound
"""What a server calls itself. Without brackets: httpx refuses `[::1]` here (InvalidURL), as it
does fd00::/8."""
_FOR_HTTP = ("http_proxy", "all_proxy")
_PROXIES = (*_FOR_HTTP, "https_proxy")
_EXCEPTIONS = ("no_proxy", "NO_PROXY")
NAMES = frozenset(name for known in (*_PROXIES, "no_proxy") for name in (known, known.upper()))
"""Every variable that is about proxies."""


def own_addresses(box: Box) -> list[str]:
    """What clients on the box may call it, beside the names that every machine has for itself."""
    listens = str(box.profile.flags.get("host") or "")
    return [name for name in (listens, box.address) if name and name not in {"::", *LOCAL}]


def asks_itself_through(environment: Mapping[str, str], tls: bool = False) -> str:
    """The variable by which what the server asks itself goes to a proxy; empty: none.

    + tls: it serves HTTPS, so the proxy of that counts too
    """
    counted = _PROXIES if tls else _FOR_HTTP
    found = [name for name, value in environment.items() if name.lower() in counted and value.strip()]
    return found[0] if found else ""


def exceptions(environment: Mapping[str, str]) -> list[str]:
    """What goes past the proxy; of two spellings the lower case counts, as curl and Python's
    clients have it."""
    text = next((environment[name] for name in _EXCEPTIONS if environment.get(name, "").strip()), "")
    return [word for word in re.split(r"[,\s]+", text) if word]


def uncovered(environment: Mapping[str, str], addresses: Sequence[str] = ()) -> list[str]:
    """Those of LOCAL and `addresses` that no exception names as every client reads it: exactly,
    or by `*`."""
    named = {word.lower() for word in exceptions(environment)}
    if "*" in named:
        return []
    return [name for name in dict.fromkeys([*LOCAL, *addresses]) if name.lower() not in named]


def completed(environment: Mapping[str, str], addresses: Sequence[str] = (), tls: bool = False) -> dict[str, str]:
    """The exceptions, in both spellings, that the environment needs beside its own; empty: no
    proxy, or none lacks.

    + addresses: the machine's own, as clients on it call it
    + tls: the server serves HTTPS
    """
    lacking = uncovered(environment, addresses)
    if not asks_itself_through(environment, tls) or not lacking:
        return {}
    return dict.fromkeys(_EXCEPTIONS, ",".join([*exceptions(environment), *lacking]))


def misread(environment: Mapping[str, str]) -> list[str]:
    """Exceptions that Python's HTTP clients do not read as meant: networks, brackets, and ports.

    httpx (the hub's client, and SGLang's) takes 10.0.0.0/8 for one host without a word; fd00::/8
    and [::1] end it with InvalidURL at its first use (httpx 0.28).
    """
    return [word for word in exceptions(environment) if _is_network(word) or word.startswith("[")]


def _is_network(word: str) -> bool:
    try:
        ipaddress.ip_network(word, strict=False)
    except ValueError:
        return False
    return "/" in word
