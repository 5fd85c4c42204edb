"""Which findings a person does not want to hear of, from a file of rules.

One rule a line: ``key=pattern`` words, all of which must fit, patterns as shells have them.
Keys: tool, kind, severity, kernel, space, file, line, function.  ``#`` begins a comment.

::

    # the queue's counter is only a hint
    tool=racecheck kernel=drain* file=*/queue.cu line=41
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from va100.check.findings import Access, Finding
from va100.errors import SetupError

KEYS: Final = ("tool", "kind", "severity", "kernel", "space", "file", "line", "function")


@dataclass(frozen=True, slots=True)
class Rule:
    """Patterns that must all fit."""

    patterns: Mapping[str, str]

    def fits(self, finding: Finding) -> bool:
        """Whether a finding is meant; of a race either access may be."""
        accesses = [a for a in (finding.first, finding.second) if a is not None]
        return any(self._fits(finding, access) for access in accesses or (None,))

    def _fits(self, finding: Finding, access: Access | None) -> bool:
        facts = {
            "tool": finding.tool,
            "kind": finding.kind,
            "severity": finding.severity,
            "kernel": finding.kernel,
            "space": finding.space,
            "file": access.file if access else "",
            "line": str(access.line) if access else "",
            "function": access.function if access else "",
        }
        return all(fnmatch.fnmatchcase(facts[k], p) for k, p in self.patterns.items())


def read_rules(path: Path) -> list[Rule]:
    """Rules of a file.

    Raises
    ------
    SetupError
        It can't be read, or a line is no rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"{path}: {error.strerror}", remedy="name a file of suppressions"
        ) from error
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        words = shlex.split(line, comments=True)
        if words:
            rules.append(_rule(words, f"{path}:{number}"))
    return rules


def _rule(words: Sequence[str], place: str) -> Rule:
    patterns: dict[str, str] = {}
    for word in words:
        key, equals, pattern = word.partition("=")
        if not equals or key not in KEYS:
            raise SetupError(
                f"{place}: {word} is no rule", remedy=f"write key=pattern with {', '.join(KEYS)}"
            )
        patterns[key] = pattern
    return Rule(patterns)


def split(findings: Sequence[Finding], rules: Sequence[Rule]) -> tuple[list[Finding], int]:
    """Findings that no rule fits, and how many some rule fits."""
    kept = [f for f in findings if not any(rule.fits(f) for rule in rules)]
    return kept, len(findings) - len(kept)


def rule_for(finding: Finding) -> str:
    """A rule that would suppress a finding, as a line of a file."""
    words = [f"tool={finding.tool}", f"kind={finding.kind}"]
    if finding.kernel:
        words.append(f"kernel={shlex.quote(finding.kernel)}")
    if finding.first is not None and finding.first.file:
        words += [f"file={shlex.quote(finding.first.file)}", f"line={finding.first.line}"]
    return " ".join(words)
