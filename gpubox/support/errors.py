"""What gpubox says when it cannot go on: what was found, what is needed, what to do."""

import click


class GpuboxError(click.ClickException):
    """An error for people: exit code 1, one message, no traceback."""

    exit_code = 1

    def __init__(self, found: str, needed: str = "", todo: str = "") -> None:
        self.found, self.needed, self.todo = found, needed, todo
        lines = [found, *(f"  needed: {needed}" for _ in [1] if needed), *(f"  to do:  {todo}" for _ in [1] if todo)]
        super().__init__("\n".join(lines))


class CannotTellError(GpuboxError):
    """The question could not be answered: exit code 2, never taken for a no."""

    exit_code = 2
