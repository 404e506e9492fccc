"""Settings of the tests that need no host. How tests find their hosts: gpubox/testing/plugin.py (pyproject.toml)."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, max_examples=150, deadline=None)
settings.register_profile("explore", max_examples=5000, deadline=None)  # `make explore`: new random settings each time
settings.load_profile("repeatable")
