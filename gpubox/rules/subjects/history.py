"""Recorded deployments: kept to be compared with, used only knowingly."""

from collections.abc import Iterator

from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule


@rule(
    "history-profile",
    "error",
    "A recorded deployment is history: what is known to be wrong with it is shown, and using it is a decision.",
    "recorded deployments",
)
def profile(c: Context) -> Iterator[Told]:
    """To be overridden by name, as each of its known errors. An adopted server is on a recorded stack because its
    release has no other, or because a person named that stack: a decision already."""
    if c.profile.status == "history":
        known = " / ".join([*c.profile.notes, *c.stack.notes])
        names = ", ".join(c.profile.required_overrides) or "history-profile"
        found = f"profile {c.profile.name} on stack {c.stack.name} is history. Known of it: {known}"
        yield Told(found, "a current profile", f"another profile, or overrides with reasons of: {names}")
    elif c.stack.status == "history" and c.profile.adopted is None:
        found = f"stack {c.stack.name} (SGLang {c.stack.sglang}) is kept for the recorded deployments alone"
        yield Told(found, "a current stack", "another stack, or an override of history-profile with a reason")
