"""Text of the templates: an undefined name is an error, nothing is escaped, nothing but what is passed is in reach."""

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpubox.support import paths


def render(name: str, **values: Any) -> str:
    """The template templates/NAME with `values`. Errors: an undefined name, no such template."""
    return environment().get_template(name).render(**values)


def environment() -> Environment:
    """The one Jinja environment."""
    return Environment(  # noqa: S701 - no HTML is made here; units and configuration must not be escaped
        loader=FileSystemLoader(paths.templates()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
