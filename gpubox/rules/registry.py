"""The list of all rules, filled by the decorator `rule` when the subject's file is imported."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpubox.rules.context import Context
from gpubox.rules.finding import Need, Severity, Told

Judge = Callable[[Context], Iterator[Told]]


@dataclass(frozen=True)
class Rule:
    """A rule: pure, judged per box."""

    id: str
    severity: Severity
    title: str
    """What it makes sure of, as a sentence."""
    evidence: tuple[str, ...]
    needs: tuple[Need, ...]
    """What it may lack, and then cannot tell."""
    judge: Judge
    subject: str
    """Name of the file that it stands in."""
    refutable: bool = False
    """It says that the server cannot start; one that was seen to run so refutes it."""


_RULES: dict[str, Rule] = {}


def rule(
    name: str,
    severity: Severity,
    title: str,
    *evidence: str,
    needs: tuple[Need, ...] = (),
    refutable: bool = False,
) -> Callable[[Judge], Judge]:
    """Add a rule. Evidence: recorded deployments, upstream issues, wheels that were read, measurements."""

    def add(judge: Judge) -> Judge:
        subject = judge.__module__.rsplit(".", 1)[-1]
        _RULES[name] = Rule(name, severity, title, evidence, needs, judge, subject, refutable)
        return judge

    return add


def rules() -> dict[str, Rule]:
    """Id -> rule, by subject, then as they stand in its file."""
    from gpubox.rules import subjects

    for module in pkgutil.iter_modules(subjects.__path__):
        importlib.import_module(f"{subjects.__name__}.{module.name}")
    # whoever imported one subject before must not change the order that people see
    return dict(sorted(_RULES.items(), key=lambda item: item[1].subject))
