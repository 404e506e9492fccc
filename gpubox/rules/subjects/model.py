"""Does the software know the model, and is it told the right things about it."""

from collections.abc import Iterator

from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule
from gpubox.support.versions import at_least


@rule(
    "transformers-version",
    "error",
    "transformers knows the model.",
    "https://github.com/zai-org/GLM-5/issues/22 (KeyError: 'glm_moe_dsa' with the version that 0.5.9 pins)",
    needs=("release", "model"),
)
def transformers(c: Context) -> Iterator[Told]:
    """The stack's lock counts; an override in it may differ from the release's pin."""
    floor, found = c.model.transformers, c.locked("transformers")
    if found is not None and not at_least(found, floor):
        yield Told(
            f"stack {c.stack.name} has transformers {found}",
            f"{floor} or newer for this model",
            "override it in the stack",
        )


@rule(
    "model-supported",
    "error",
    "The pinned SGLang has the model's class.",
    "read in the wheel of the release: the classes that its models register",
    needs=("release", "model"),
    refutable=True,
)
def supported(c: Context) -> Iterator[Told]:
    """By the architecture that config.json names."""
    if c.model.architecture not in c.release.architectures:
        found = f"SGLang {c.release.sglang} does not know {c.model.architecture}"
        yield Told(found, "a release that does", "a stack with a newer SGLang")


@rule(
    "quantization-mismatch",
    "error",
    "The quantisation that is asked for is the checkpoint's.",
    "read in the wheels: SGLang refuses another one than config.json has, after reading it",
    needs=("release", "model"),
    refutable=True,
)
def quantization(c: Context) -> Iterator[Told]:
    """Left out, SGLang takes the checkpoint's."""
    given = c.text("quantization")
    if given and c.model.quantization is not None and given != c.model.quantization:
        yield Told(
            f"--quantization {given}", f"{c.model.quantization}, as the checkpoint is", "correct it, or leave it out"
        )


@rule(
    "parsers",
    "warning",
    "Reasoning and tool calls are read by the parsers of the model.",
    "recorded deployments: glm45 and glm47 for GLM-5",
    "the models' own pages",
    needs=("release", "model"),
)
def parsers(c: Context) -> Iterator[Told]:
    """Another parser lets the model's markup through to clients."""
    for flag, wanted in (
        ("reasoning-parser", c.model.reasoning_parser),
        ("tool-call-parser", c.model.tool_call_parser),
    ):
        given = c.text(flag)
        if wanted is not None and given not in {wanted, "auto"}:
            yield Told(f"--{flag} {given or 'is not given'}", f"{wanted} for this model", f"set it to {wanted}")


@rule(
    "model-name",
    "error",
    "The model that is served is the one that was checked.",
    "gpubox/catalog/models.yaml",
    needs=("model",),
)
def name(c: Context) -> Iterator[Told]:
    """A hub name of another catalogue entry means that memory was computed for the wrong model."""
    path = c.profile.model_path
    if not path.startswith("/") and path and path not in c.model.hub:
        found = f"--model-path {path}, checked as {c.profile.model.catalog}"
        yield Told(found, f"one of: {', '.join(c.model.hub) or 'a folder on the box'}", "correct one of the two")
