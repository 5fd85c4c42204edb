"""What the checker found while a test ran, and what it means for the test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from va100.check.findings import Finding, Severity, merged
from va100.check.report import Outcome, report_text
from va100.check.session import parse_findings
from va100.check.suppress import Rule, read_rules, split

_LIMIT: Final = 20
"""Findings of one test that are told in full."""
_TOLD: Final = (Severity.ERROR.value, Severity.WARN.value)


class Judge:
    """Which findings count, and how they are told.

    Errors fail a test; warnings are told.  Leaks are a program's, not a test's.
    """

    def __init__(self, tools: Sequence[str], suppressions: str | None) -> None:
        self.tools = tuple(tools)
        self._rules: list[Rule] = read_rules(Path(suppressions)) if suppressions else []

    def counted(self, lines: Iterable[str]) -> list[Finding]:
        """Findings in lines that the checker wrote which are to be told, equal ones merged."""
        found, _ = parse_findings(lines)
        kept, _ = split(found, self._rules)
        return [f for f in kept if f.severity in _TOLD and f.kind != "leak"]

    def verdict(self, findings: Sequence[Finding]) -> str:
        """Why a test fails: the first error in one line, then the report."""
        errors = [f for f in findings if f.severity == Severity.ERROR.value]
        first = errors[0]
        place = f" at {first.first.place}" if first.first is not None else ""
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        return f"{first.tool}: {first.title}{place}{more}\n{self.text(findings)}"

    def text(self, findings: Sequence[Finding]) -> str:
        """The report on some findings."""
        return report_text(Outcome(tools=self.tools, findings=findings), limit=_LIMIT)


def has_error(findings: Iterable[Finding]) -> bool:
    """Whether one of them fails a test."""
    return any(finding.severity == Severity.ERROR.value for finding in findings)


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Equal findings of several processes as one."""
    return merged(list(findings))
