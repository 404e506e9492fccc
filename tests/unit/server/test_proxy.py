"""Proxies: exceptions that clients read as meant, in the environment of a server that has a
proxy, and only there."""

from dataclasses import replace

import httpx
import pytest

from gpubox.hosts import Box
from gpubox.server import proxy
from gpubox.server.service import service_of
from gpubox.settings import profile, stack
from gpubox.settings.host import BoxSettings

pytestmark = pytest.mark.pain("P95")

PROXY = "http://192.0.2.1:3128"
ALL = "127.0.0.1,localhost,0.0.0.0,::1"
ITSELF = [f"http://{host}:30000/" for host in (*ALL.replace("::1", "[::1]").split(","), "192.0.2.21")]


@pytest.mark.parametrize(
    ("environment", "addresses", "exceptions"),
    [
        ({}, ["192.0.2.21"], None),
        ({"NO_PROXY": "x"}, [], None),
        ({"http_proxy": ""}, [], None),
        ({"https_proxy": PROXY}, [], None),
        ({"http_proxy": PROXY}, [], ALL),
        ({"ALL_PROXY": PROXY}, ["192.0.2.21"], f"{ALL},192.0.2.21"),
        ({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost,127.0.0.1"}, [], "localhost,127.0.0.1,0.0.0.0,::1"),
        ({"http_proxy": PROXY, "no_proxy": ".example.com 127.0.0.1", "NO_PROXY": "x"}, [], f".example.com,{ALL}"),
        ({"http_proxy": PROXY, "no_proxy": "*"}, [], None),
        ({"http_proxy": PROXY, "no_proxy": ALL}, [], None),
    ],
)
def test_exceptions_that_are_added(environment: dict[str, str], addresses: list[str], exceptions: str | None) -> None:
    found = proxy.completed(environment, addresses)
    if exceptions is None:
        assert found == {}
        return
    assert found["no_proxy"] == found["NO_PROXY"]
    assert set(found["no_proxy"].split(",")) == set(exceptions.split(","))
    assert proxy.completed({**environment, **found}, addresses) == {}


def test_a_server_with_tls_is_asked_through_the_other_proxy() -> None:
    assert proxy.completed({"https_proxy": PROXY}, tls=True)["no_proxy"] == ALL


def test_httpx_goes_past_the_proxy_with_them_and_not_without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in proxy.NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", PROXY)
    assert not any(_direct(url) for url in ITSELF)
    monkeypatch.setenv("no_proxy", proxy.completed({"http_proxy": PROXY}, ["192.0.2.21"])["no_proxy"])
    assert all(_direct(url) for url in ITSELF)
    assert not _direct("http://example.com/")


@pytest.mark.parametrize(
    ("exception", "effect"), [("192.0.2.0/24", "ignored"), ("fd00::/8", "refused"), ("[::1]", "refused")]
)
def test_what_httpx_makes_of_networks_and_brackets(
    exception: str, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the rule says is what the client does."""
    for name in proxy.NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", PROXY)
    monkeypatch.setenv("no_proxy", exception)
    assert proxy.misread({"no_proxy": exception}) == [exception]
    if effect == "refused":
        with pytest.raises(httpx.InvalidURL):
            httpx.Client()
    else:
        assert not _direct("http://192.0.2.21:30000/")


def _direct(url: str) -> bool:
    client = httpx.Client()
    return client._transport_for_url(httpx.URL(url)) is client._transport


def test_the_service_gets_them_only_with_a_proxy() -> None:
    wish = profile.load("tiny-cpu")
    settings, on = BoxSettings(profile="tiny-cpu"), stack.load(wish.stack)
    plain = Box("gpu01", settings, wish, on, {"ssh_hostname": "192.0.2.21"})
    before = service_of(plain)
    assert not proxy.NAMES & before.environment.keys()
    with_proxy = wish.model_copy(update={"environment": {**wish.environment, "http_proxy": PROXY}})
    after = service_of(replace(plain, profile=with_proxy))
    assert after.environment["NO_PROXY"] == after.environment["no_proxy"] == f"{ALL},192.0.2.21"
    assert after.environment.keys() - before.environment.keys() == {"http_proxy", "no_proxy", "NO_PROXY"}
