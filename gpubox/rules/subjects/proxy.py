"""Proxies: what the server asks itself must not go through one."""

from collections.abc import Iterator

from gpubox.rules.context import Context
from gpubox.rules.finding import Severity, Told
from gpubox.rules.registry import rule
from gpubox.server import proxy


@rule(
    "proxy-exceptions",
    "warning",
    "Exceptions from a proxy are written as Python's HTTP clients read them.",
    "https://github.com/THUDM/slime/issues/1714 (a network in no_proxy does nothing)",
    "tried with httpx 0.28: 10.0.0.0/8 counts as one host; fd00::/8 and [::1] are InvalidURL",
)
def exceptions(c: Context) -> Iterator[Told]:
    """Of the profile; those that systemd gives are told with what they lack."""
    if wrong := proxy.misread(c.environment):
        needed = "single hosts, or a domain with its dot, as .example.com"
        yield Told(f"no_proxy of the profile holds {', '.join(wrong)}", needed, "name the hosts themselves")


@rule(
    "proxy-inherited",
    "error",
    "A proxy that systemd gives every service leaves out what the server asks itself.",
    "https://github.com/sgl-project/sglang/issues/9814 (the warm-up goes to the proxy, the server ends)",
    "https://github.com/sgl-project/sglang/issues/4935",
    "https://github.com/sgl-project/sglang/issues/9155",
    needs=("facts",),
)
def inherited(c: Context) -> Iterator[Told]:
    """Judged with the profile's own variables over those of systemd, as the process gets them."""
    whole = {**c.proxies, **c.environment}
    tls = "ssl-certfile" in c.profile.flags
    name = proxy.asks_itself_through(c.proxies, tls)
    if not name or proxy.asks_itself_through(c.environment, tls):
        return  # with a proxy of the profile, the exceptions are completed by the release itself
    lacking = proxy.uncovered(whole, proxy.own_addresses(c.box))
    wanted = ",".join([*proxy.exceptions(whole), *lacking])
    todo = f"in the profile's environment, NO_PROXY and no_proxy: {wanted}"
    if lacking:
        severity: Severity = "error" if "127.0.0.1" in lacking else "warning"
        found = f"systemd gives every service {name}, and no exception for {', '.join(lacking)}"
        yield Told(found, "exceptions for the server itself", todo, severity)
    if wrong := proxy.misread(c.proxies):
        yield Told(f"no_proxy of systemd holds {', '.join(wrong)}", "single hosts", todo, "warning")
