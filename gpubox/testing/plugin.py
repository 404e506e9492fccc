"""How tests find their hosts: by name, through the same inventory as the deploy.

This repository loads it by pyproject.toml; the project that `gpubox init` makes loads it in tests/conftest.py, and then
`pytest tests/` asks the shipped acceptance tests, too. Boxes that do not answer are skipped with the reason;
`--hosts=gpu01,...` names the boxes: then one that does not answer is a failure.
"""

import socket
from pathlib import Path

import pytest

from gpubox import inventory
from gpubox.hosts import Box
from gpubox.inventory import Inventory
from gpubox.support import paths
from gpubox.support.errors import GpuboxError
from gpubox.testing.hosts import spec

_MARKERS = (
    "ci: a test below tests/faults that is cheap enough for every `make test`",
    "pain(*ids): the public problems (P01, ...) that a test shows prevented, detected or repaired",
)
_found = pytest.StashKey[Inventory]()
_reason = pytest.StashKey[str]()


def acceptance() -> Path:
    """The folder of the acceptance tests, as shipped."""
    return paths.root() / "tests" / "acceptance"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the run."""
    group = parser.getgroup("gpubox")
    text = "pyinfra inventory that names the hosts (default: inventory/lxc.py, or the only one there)"
    group.addoption("--inventory", type=Path, help=text)
    group.addoption("--practice", action="store_true", help="run tests/faults: they damage the practice machine")
    group.addoption("--no-skips", action="store_true", help="a skipped test is a failure")


def pytest_configure(config: pytest.Config) -> None:
    """Read the inventory; tell testinfra its hosts. Errors: mistakes in it, a box that it does not have."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    try:
        found = inventory.load(config.getoption("--inventory"))
        names = config.option.hosts.split(",") if config.option.hosts else list(found.boxes)
        boxes = [found.box(name) for name in names]
    except GpuboxError as error:
        raise pytest.UsageError(error.message) from error
    deaf = [box.name for box in boxes if not config.option.hosts and not _answers(box)]
    config.stash[_found] = found
    config.stash[_reason] = f"{', '.join(deaf)} does not answer (practice machine: gpubox lab up)" if deaf else ""
    config.option.hosts = ",".join(spec(box.name, box.connection) for box in boxes)
    if _asks_for_all(config):
        config.args.append(str(acceptance()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a box, where none answers."""
    if not config.stash[_reason]:
        return
    for item in items:
        if acceptance() in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=config.stash[_reason]))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --no-skips a skipped test fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def boxes(pytestconfig: pytest.Config) -> Inventory:
    """The inventory that the run uses."""
    return pytestconfig.stash[_found]


def _asks_for_all(config: pytest.Config) -> bool:
    """Whether a person's project is asked for its whole folder of tests, not for some of its own."""
    project = paths.project().resolve()
    if project == paths.root().resolve():
        return False
    asked = {(config.invocation_params.dir / argument).resolve() for argument in config.args}
    return bool(asked & {project, project / "tests"})


def _answers(box: Box) -> bool:
    try:
        with socket.create_connection((box.address, int(box.connection.get("ssh_port", 22))), timeout=1):
            return True
    except OSError:
        return False
