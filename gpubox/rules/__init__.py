"""Judge a box's settings by what is known, before a host is touched, and again with facts from the host.

Exit codes: 0 clean, 1 errors, 2 nothing wrong but something could not be judged.
"""

from collections.abc import Iterable
from dataclasses import replace

from rich.console import Console
from rich.markup import escape

from gpubox.hosts import Box
from gpubox.remote import secrets
from gpubox.rules import context
from gpubox.rules.context import Context
from gpubox.rules.facts import BoxFacts
from gpubox.rules.finding import Finding, Severity, UnknownError
from gpubox.rules.registry import Rule, rules
from gpubox.support.errors import CannotTellError
from gpubox.support.hanging_indent import hanging

_LOWER: dict[Severity, Severity] = {"error": "warning", "unknown": "warning", "warning": "info", "info": "info"}
_ORDER: list[Severity] = ["error", "unknown", "warning", "info"]
_STYLE = {"error": "bold red", "unknown": "bold magenta", "warning": "yellow", "info": "dim"}
_UNKNOWN = "unknown-"
_SEEN_RUNNING = "a server ran with exactly these settings, on this release, when it was adopted"
_SHORTEST_SECRET = 4
"""Letters; a shorter one would take parts of words out of a message."""
_ABOUT_OVERRIDES = ("override-unknown", "override-needless")


def check(box: Box, facts: BoxFacts | None = None) -> list[Finding]:
    """Everything that all rules say about a box, worst first. Facts None: nothing that only a host knows counts."""
    judged = context.of(box, facts)
    found: list[Finding] = []
    missing: dict[str, list[tuple[Rule, UnknownError]]] = {}
    for one in rules().values():
        try:
            found += _findings(one, judged)
        except UnknownError as error:
            missing.setdefault(error.need, []).append((one, error))
        except CannotTellError as error:  # a version in a form that has no order, as a host told it
            missing.setdefault("facts", []).append((one, UnknownError("facts", error.found, error.needed)))
    found += [_unknown(box.name, need, lacking) for need, lacking in missing.items() if facts or need != "facts"]
    if judged.seen_running:
        found = [_refuted(finding) for finding in found]
    return sorted(_overridden(judged, found), key=lambda finding: _ORDER.index(finding.severity))


def exit_code(findings: Iterable[Finding]) -> int:
    """0 clean, 1 errors, 2 something could not be judged."""
    severities = {finding.severity for finding in findings}
    return 1 if "error" in severities else 2 if "unknown" in severities else 0


def errors(findings: Iterable[Finding]) -> str:
    """Why a run must not go on: the rules that call something an error; empty: it may."""
    wrong = sorted({f"{finding.host}: {finding.rule}" for finding in findings if finding.severity == "error"})
    if not wrong:
        return ""
    return f"known to fail: {', '.join(wrong)}; mend the settings, or override the rule by name, with a reason"


def report(findings: Iterable[Finding], console: Console) -> None:
    """Print findings for people."""
    for finding in findings:
        word = "cannot tell" if finding.severity == "unknown" else finding.severity
        style = _STYLE[finding.severity]
        console.print(f"[{style}]{word:11}[/] {escape(finding.host)}  [bold]{finding.rule}[/]", highlight=False)
        texts = {
            "overridden": finding.overridden,
            "found": finding.found,
            "needed": finding.needed,
            "to do": finding.todo,
            "evidence": "; ".join(finding.evidence),
        }
        hanging(console, [(f"{label}:", text) for label, text in texts.items() if text], indent=12, width=12)


def _findings(one: Rule, judged: Context) -> list[Finding]:
    """What one rule says; a rule may show a setting, but none that is secret."""
    host, known = judged.box.name, _secret_settings(judged)
    found = []
    for told in one.judge(judged):
        seen, needed, todo = (secrets.without(text, known) for text in (told.found, told.needed, told.todo))
        found.append(Finding(one.id, told.severity or one.severity, host, seen, needed, todo, one.evidence))
    return found


def _secret_settings(judged: Context) -> list[str]:
    settings = [
        *((f"--{name}", str(value)) for name, value in judged.profile.flags.items()),
        *judged.environment.items(),
    ]
    return [
        value
        for name, value in settings
        if len(value) >= _SHORTEST_SECRET and secrets.data(value, name) == secrets.MASK
    ]


def _unknown(host: str, need: str, lacking: list[tuple[Rule, UnknownError]]) -> Finding:
    causes = "; ".join(dict.fromkeys(error.found for _, error in lacking))
    todo = "; ".join(dict.fromkeys(error.todo for _, error in lacking))
    names = ", ".join(one.id for one, _ in lacking)
    return Finding(_UNKNOWN + need, "unknown", host, causes, f"to judge {names}", todo, ())


def _refuted(finding: Finding) -> Finding:
    """What a rule says of settings that were seen to run is no reason to stop; it may be why they run badly."""
    rule = rules().get(finding.rule)
    wrong = rule is not None and rule.refutable and finding.severity == "error"
    not_judged = finding.severity == "unknown" and finding.rule != f"{_UNKNOWN}facts"
    return replace(finding, severity="warning", overridden=_SEEN_RUNNING) if wrong or not_judged else finding


def _overridden(judged: Context, found: list[Finding]) -> list[Finding]:
    reasons = {override.rule: override.reason for override in judged.settings.overrides}
    broken = {finding.rule for finding in found}
    lowered = [
        replace(finding, overridden=reasons[finding.rule], severity=_LOWER[finding.severity])
        if finding.rule in reasons
        else finding
        for finding in found
    ]
    return lowered + [_about_override(judged.box.name, name) for name in reasons if name not in broken]


def _about_override(host: str, name: str) -> Finding:
    if name in rules() or name.startswith(_UNKNOWN):
        text = f"the override of {name} is not needed: the rule has nothing to say"
        return Finding(_ABOUT_OVERRIDES[1], "info", host, text, "only overrides that are needed", "take it out", ())
    known = "an id as `gpubox check` prints it; docs/rules.md lists all"
    return Finding(_ABOUT_OVERRIDES[0], "error", host, f"an override names {name!r}, which is no rule", known, "", ())
