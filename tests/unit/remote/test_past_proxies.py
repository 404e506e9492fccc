"""Whatever asks the server goes past the proxy of the login that it runs in."""

import re

import pytest

from gpubox.remote import endpoint
from gpubox.support import paths

pytestmark = pytest.mark.pain("P95")


@pytest.mark.parametrize(
    ("variables", "exceptions"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "a, b"}, "a,b,127.0.0.1"),
        ({"no_proxy": "x", "NO_PROXY": "y"}, "x,127.0.0.1"),
        ({"no_proxy": "127.0.0.1"}, None),
        ({"no_proxy": "*"}, None),
    ],
)
def test_a_client_of_sglang_gets_an_exception(variables: dict[str, str], exceptions: str | None) -> None:
    found = endpoint.past_proxies("http://127.0.0.1:30000", variables)
    assert found == ({} if exceptions is None else {"no_proxy": exceptions, "NO_PROXY": exceptions})


def test_nothing_in_the_product_asks_by_the_environments_proxy() -> None:
    """urlopen takes the environment's proxies, and so does httpx without trust_env=False."""
    found = {
        str(file.relative_to(paths.root()))
        for file in paths.root().glob("gpubox/**/*.py")
        if re.search(r"urllib\.request\.urlopen|httpx\.(get|post|Client)\((?!.*trust_env=False)", file.read_text())
        and "lab" not in file.parts
    }
    assert found == set()
