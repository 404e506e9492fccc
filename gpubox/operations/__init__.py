"""Decide: compare a fact with what is wanted and yield commands, or nothing. Pairs with facts/ by name."""

from collections.abc import Generator
from typing import Any, TypeAlias

Commands: TypeAlias = Generator[Any, None, None]
"""What an operation is: a generator of pyinfra commands (str, StringCommand, FileUploadCommand, FunctionCommand)."""
