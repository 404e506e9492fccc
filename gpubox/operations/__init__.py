"""Decide: compare a fact with what is wanted and yield commands, or nothing. Pairs with facts/ by name."""

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, ParamSpec, TypeAlias

from pyinfra import logger
from pyinfra.api import Host, OperationError, State
from pyinfra.api import operation as pyinfra_operation
from pyinfra.api.command import FunctionCommand
from pyinfra.api.operation import PyinfraOperation
from pyinfra.context import ctx_state

from gpubox.support.errors import GpuboxError

P = ParamSpec("P")
Commands: TypeAlias = Generator[Any, None, None]
"""What an operation is: a generator of pyinfra commands (str, StringCommand, FileUploadCommand, FunctionCommand)."""


def operation() -> Callable[[Callable[P, Commands]], PyinfraOperation[P]]:
    """pyinfra's `operation`, where an error for people ends the run of its own host, with the message and no traceback.

    Raised while a run executes (and `pyinfra -y` asks nothing before), pyinfra would print tracebacks and end the run
    of every host.
    """

    def decorate(decide: Callable[P, Commands]) -> PyinfraOperation[P]:
        @wraps(decide)
        def told(*args: P.args, **kwargs: P.kwargs) -> Commands:
            try:
                for command in decide(*args, **kwargs):
                    yield _telling(command) if isinstance(command, FunctionCommand) else command
            except (GpuboxError, OperationError) as error:
                if not ctx_state.isset():
                    raise
                if not ctx_state.get().is_executing:
                    raise OperationError(_message(error)) from None
                yield FunctionCommand(_fail, (error,), {})

        return pyinfra_operation()(told)

    return decorate


def _telling(command: FunctionCommand) -> FunctionCommand:
    """The command, whose own errors for people are told in the same way."""
    act = command.function

    @wraps(act)
    def told(state: State, host: Host, *args: Any, **kwargs: Any) -> object:
        try:
            return act(state, host, *args, **kwargs)
        except (GpuboxError, OperationError) as error:
            return _fail(state, host, error)

    command.function = told
    return command


def _fail(state: State, host: Host, error: GpuboxError | OperationError) -> bool:
    logger.error(f"{host.print_prefix}{_message(error)}")
    return False


def _message(error: GpuboxError | OperationError) -> str:
    return error.message if isinstance(error, GpuboxError) else str(error)
