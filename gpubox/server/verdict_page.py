"""The table of known lines of SGLang's log as a page for people."""

from gpubox.server import verdict

_TITLES = {"fatal": "It does not serve", "slow": "It serves, slower than it could", "benign": "Nothing to do"}


def lines() -> list[str]:
    """Lines of Markdown, by what a line means."""
    written = [
        "# SGLang's log",
        "",
        "Known lines, as regular expressions. The deploy, the doctor and the bench judge by",
    ]
    written += ["them: the first that matches a line counts."]
    for kind, title in _TITLES.items():
        written += ["", f"## {title}"]
        for known in (line for line in verdict.table().lines if line.kind == kind):
            written += ["", f"### `{known.id}`", "", "```text", known.pattern, "```", ""]
            written += [f"- cause: {known.cause}", f"- cure: {known.cure}", f"- source: {known.source}"]
    return written
