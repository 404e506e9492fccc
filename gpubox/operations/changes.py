"""What a step did, for the steps after it."""

from dataclasses import dataclass

from pyinfra.api.operation import OperationMeta


@dataclass(frozen=True)
class Changes:
    """The operations of a step that matter to whoever runs on top of it."""

    operations: tuple[OperationMeta, ...] = ()

    def did_change(self) -> bool:
        """Whether any of them changed the host; only to be asked while the run executes, as pyinfra's own."""
        return any(operation.did_change() for operation in self.operations)

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(self.operations + other.operations)
