"""How the tests find their hosts: by name, through the same inventory as the deploy.

`pytest tests/` runs the unit tests, and the acceptance tests against the boxes of inventory/lxc.py if they answer, else
skips them with the reason. `--hosts=gpu01,...` names the boxes: then one that does not answer is a failure.
"""

import socket
from pathlib import Path

import pytest
from hypothesis import settings

from gpubox import inventory
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.support.errors import GpuboxError
from tests.ssh import spec

ACCEPTANCE = Path(__file__).parent / "acceptance"
_found = pytest.StashKey[Inventory]()
_reason = pytest.StashKey[str]()

settings.register_profile("repeatable", derandomize=True, max_examples=150, deadline=None)
settings.register_profile("explore", max_examples=5000, deadline=None)  # `make explore`: new random settings each time
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpubox")
    group.addoption("--inventory", type=Path, help="pyinfra inventory that names the hosts (default: inventory/lxc.py)")
    group.addoption("--practice", action="store_true", help="run tests/faults: they damage the practice machine")
    group.addoption("--no-skips", action="store_true", help="a skipped test is a failure")


def pytest_configure(config: pytest.Config) -> None:
    try:
        found = inventory.load(config.getoption("--inventory"))
        names = config.option.hosts.split(",") if config.option.hosts else list(found.boxes)
        boxes = [found.box(name) for name in names]
    except GpuboxError as error:
        raise pytest.UsageError(error.message) from error
    deaf = [box.name for box in boxes if not config.option.hosts and not _answers(box)]
    config.stash[_found] = found
    config.stash[_reason] = f"{', '.join(deaf)} does not answer: `make lab-up`, then deploy" if deaf else ""
    config.option.hosts = ",".join(spec(box.name, box.connection) for box in boxes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.stash[_reason]:
        return
    for item in items:
        if ACCEPTANCE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=config.stash[_reason]))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def boxes(pytestconfig: pytest.Config) -> Inventory:
    """The inventory that the run uses."""
    return pytestconfig.stash[_found]


def _answers(box: Box) -> bool:
    try:
        with socket.create_connection((box.address, int(box.connection.get("ssh_port", 22))), timeout=1):
            return True
    except OSError:
        return False
