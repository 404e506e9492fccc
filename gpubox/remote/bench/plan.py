"""What the runner is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Plan:
    """One sweep. Arrives as JSON on standard input, so that a key in it is never seen in a process list or a file."""

    folder: str
    """Where raw files and events.jsonl go; made by whoever starts the runner."""
    url: str
    """The server's base URL, without a slash at the end."""
    concurrency: list[int]
    """Numbers of clients, in the order of measuring."""
    input_tokens: int
    output_tokens: int
    prompts_per_client: int
    """Requests in a row = this times the number of clients, in every row alike."""
    repeat: int
    """How often the whole sweep is measured."""
    patience_s: float
    """A row is given up when no request finished for this many seconds."""
    unit: str | None = None
    """The systemd unit that runs the server here; None: it runs elsewhere or as our child."""
    command: list[str] = field(default_factory=list)
    """A server to start as our own child; empty: it runs already."""
    start_timeout_s: float = 1800
    """Seconds that a child gets until /health answers."""
    tokenizer: str | None = None
    """Local path or hub name; None: what the server says it uses."""
    question: str = "Say in one sentence what the sea looks like."
    """Asked before and after, at temperature 0."""
    answer: str | None = None
    """The known answer; None: it must only be plausible."""
    api_key: str | None = None


@dataclass(frozen=True)
class Point:
    """One row to measure."""

    concurrency: int
    repeat: int
    prompts: int
    output_tokens: int
    seed: int

    @property
    def name(self) -> str:
        """Name of the raw files."""
        return f"r{self.repeat}-c{self.concurrency}"


def points(plan: Plan) -> list[Point]:
    """All rows. The sweep is repeated as a whole, so that a drift of the machine shows as spread and not as a trend."""
    return [
        Point(clients, repeat, clients * plan.prompts_per_client, plan.output_tokens, 100_000 * repeat + clients)
        for repeat in range(1, plan.repeat + 1)
        for clients in plan.concurrency
    ]


def warm_ups(plan: Plan) -> list[Point]:
    """One sweep that does not count: a request of the full length for each client, in the order of the rows.

    The first requests of a shape pay for what later ones find ready: graphs, kernels chosen or compiled for it,
    the allocator's blocks. Two requests at least, for the first one is what makes it ready.
    """
    return [Point(clients, 0, max(2, clients), plan.output_tokens, clients) for clients in plan.concurrency]
