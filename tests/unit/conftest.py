"""Fixtures of the tests that need no host."""

import pytest

from tests.unit.interpreters import interpreters


@pytest.fixture(params=list(interpreters().values()), ids=list(interpreters()))
def remote_python(request: pytest.FixtureRequest) -> str:
    """A Python that a box may have: the oldest and the newest of this machine."""
    return str(request.param)
