"""Errors for people, raised while an operation decides: a message, and the end of this host's run."""

import re
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api import Host, OperationError, State
from pyinfra.api.command import FunctionCommand
from pyinfra.context import ctx_state

from gpubox.operations import operation
from gpubox.support import paths
from gpubox.support.errors import CannotTellError

ERRORS = [CannotTellError("it is frozen", "running", "wait"), OperationError("it is frozen\n  needed: running")]


@operation()
def decide(error: Exception) -> Generator[str, None, None]:
    """One command, then trouble."""
    yield "true"
    raise error


@pytest.mark.parametrize("error", ERRORS)
def test_in_a_plan_pyinfra_tells_it(error: Exception) -> None:
    with ctx_state.use(SimpleNamespace(is_executing=False)), pytest.raises(OperationError, match="frozen\n  needed"):
        list(decide._inner(error))


@pytest.mark.parametrize("error", ERRORS)
def test_in_a_run_the_host_fails_with_its_message(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with ctx_state.use(SimpleNamespace(is_executing=True)), caplog.at_level("ERROR", "pyinfra"):
        first, failing = decide._inner(error)
        host = SimpleNamespace(print_prefix="[pve01] ")
        assert first == "true"
        assert failing.function(cast(Any, None), cast(Any, host), *failing.args) is False
    assert "[pve01] it is frozen\n  needed: running" in caplog.text


@operation()
def act(error: Exception) -> Generator[FunctionCommand, None, None]:
    """A function of ours that ends in trouble."""

    def trouble(state: State, host: Host) -> None:
        raise error

    yield FunctionCommand(trouble, (), {})


@pytest.mark.parametrize("error", ERRORS)
def test_in_a_function_that_the_run_calls_too(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    [command] = act._inner(error)
    with caplog.at_level("ERROR", "pyinfra"):
        host = SimpleNamespace(print_prefix="[pve01] ")
        assert command.execute(cast(Any, None), cast(Any, host), cast(Any, {})) is False
    assert "[pve01] it is frozen\n  needed: running" in caplog.text


def test_other_errors_are_mistakes_of_ours_and_stay() -> None:
    with ctx_state.use(SimpleNamespace(is_executing=True)), pytest.raises(KeyError):
        list(decide._inner(KeyError("x")))


def test_every_operation_is_one_of_these() -> None:
    files = sorted((paths.root() / "gpubox/operations").glob("*.py"))
    theirs = re.compile(r"^from pyinfra\.api(\.operation)? import (.*, )?operation\b(?! as )", re.M)
    assert [file.name for file in files if theirs.search(file.read_text())] == []
