"""Findings as text for people, in the form that compute-sanitizer made usual, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from va100.check.findings import Access, Finding, Severity, Tool

BAR: Final = "========="
RACE_FORMS: Final = ("analysis", "hazard", "all")
"""How races are told: by the two places, as the hazard that a witness saw, both ways."""
ASYNCHRONOUS: Final = "asynchronous copy"
"""What an access by ``cp.async`` is called."""
_LABELS: Final = {"error": "Error", "warn": "Warning", "info": "Info"}
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All that a run under check amounts to."""

    tools: tuple[str, ...]
    findings: Sequence[Finding]
    """What is told."""
    hidden: int = 0
    """Findings too mild to be told."""
    suppressed: int = 0
    complete: bool = True
    """False when the program ended before it could tell all."""
    status: int = 0
    """The program's own, where that is to be told."""

    @property
    def errors(self) -> int:
        """Findings that are errors."""
        return sum(f.severity == Severity.ERROR.value for f in self.findings)

    @property
    def warnings(self) -> int:
        """Findings that are warnings."""
        return sum(f.severity == Severity.WARN.value for f in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextForm:
    """How a report for people looks."""

    races: str = RACE_FORMS[0]
    prefix: str = BAR
    strip_paths: bool = False


def report_text(outcome: Outcome, *, limit: int = 0, form: TextForm = TextForm()) -> str:
    """Everything, at most ``limit`` findings in full (0: all)."""
    lines = [f"VA100 CHECK ({', '.join(outcome.tools)})"]
    told = outcome.findings[:limit] if limit else outcome.findings
    for finding in told:
        lines += _lines(_stripped(finding) if form.strip_paths else finding, form.races)
        lines.append("")
    left = len(outcome.findings) - len(told)
    if left:
        lines.append(f"{left} more not shown; --print-limit shows more")
    if not outcome.complete:
        lines.append("the program ended early: memory it still held was not looked for")
    if outcome.status:
        lines.append(f"the program itself ended with status {outcome.status}")
    lines += _summary(outcome)
    return "\n".join(f"{form.prefix} {line}".rstrip() for line in lines)


def _stripped(finding: Finding) -> Finding:
    """The finding with files as mere names."""
    first, second = (
        access and replace(access, file=PurePath(access.file).name)
        for access in (finding.first, finding.second)
    )
    return replace(finding, first=first, second=second)


def _lines(finding: Finding, races: str) -> Iterator[str]:
    if finding.tool == Tool.RACECHECK.value:
        if races != "analysis" and finding.hazard:
            yield from _hazard_lines(finding)
        if races != "hazard" or not finding.hazard:
            yield from _race_lines(finding)
        return
    label = "" if finding.severity == Severity.ERROR.value else f"{_LABELS[finding.severity]}: "
    yield label + finding.title
    if finding.first is not None:
        yield f"    at {_at(finding.first, finding)}"
        yield f"    by {_thread(finding.first)}"
    for detail in finding.details:
        yield f"    {detail}"
    if finding.second is not None:
        gone = _triple(finding.second.thread)
        yield f"    thread {gone} is past it, at {_at(finding.second, finding)}"
    if finding.count > 1:
        yield f"    {finding.count} times"


def _race_lines(finding: Finding) -> Iterator[str]:
    first, second = finding.first, finding.second
    yield f"{_LABELS[finding.severity]}: {finding.title}"
    for joint, access in (("", first), ("and ", second)):
        if access is not None:
            yield f"    {joint}{access.what} at {_at(access, finding)}"
            yield f"        by {_thread(access)}"
    for detail in finding.details:
        yield f"    {detail}"
    yield f"    [{finding.count} {_plural(finding.count, 'hazard')}]"


def _hazard_lines(finding: Finding) -> Iterator[str]:
    """The witness, the earlier access first, as it happened in this run."""
    accesses = [a for a in (finding.first, finding.second) if a is not None]
    if finding.reversed:
        accesses.reverse()
    late = " (invalid memcpy_async synchronization)" if _is_copied(accesses) else ""
    block = _triple(accesses[-1].cta) if accesses else "(?)"
    yield (
        f"{_LABELS[finding.severity]}: Potential {finding.hazard} hazard{late} detected at "
        f"__{finding.space}__ 0x{finding.address:x} in block {block}:"
    )
    for access in accesses:
        yield f"    {access.what.capitalize()} {_thread(access)} at {_at(access, finding)}"
    for detail in finding.details[1:]:
        yield f"    {detail}"
    yield f"    [{finding.count} {_plural(finding.count, 'hazard')}]"


def _is_copied(accesses: Sequence[Access]) -> bool:
    return any(access.what == ASYNCHRONOUS for access in accesses)


def _at(access: Access, finding: Finding) -> str:
    where = f"{access.function or finding.kernel} in {access.place}"
    return f"{where}: {access.instruction}" if access.instruction else where


def _thread(access: Access) -> str:
    return f"thread {_triple(access.thread)} in block {_triple(access.cta)}"


def _triple(values: tuple[int, int, int]) -> str:
    return f"({values[0]},{values[1]},{values[2]})"


def _summary(outcome: Outcome) -> Iterator[str]:
    leaks = [f for f in outcome.findings if f.kind == "leak"]
    if leaks:
        total = sum(f.size_bytes for f in leaks)
        yield f"LEAK SUMMARY: {total} bytes leaked in {len(leaks)} allocations"
    races = [f for f in outcome.findings if f.tool == Tool.RACECHECK.value]
    if Tool.RACECHECK.value in outcome.tools:
        errors = sum(f.severity == Severity.ERROR.value for f in races)
        warnings = sum(f.severity == Severity.WARN.value for f in races)
        counts = f"{errors} {_plural(errors, 'error')}, {warnings} {_plural(warnings, 'warning')}"
        yield f"RACECHECK SUMMARY: {len(races)} {_plural(len(races), 'hazard')} ({counts})"
    total = sum(f.count for f in outcome.findings if f.severity == Severity.ERROR.value)
    line = f"ERROR SUMMARY: {outcome.errors} {_plural(outcome.errors, 'error')}"
    if total != outcome.errors:
        line += f" ({total} times)"
    if outcome.suppressed:
        line += f", {outcome.suppressed} suppressed"
    yield line


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else noun + "s"


def report_json(outcome: Outcome, *, program: str) -> str:
    """The same as one JSON object."""
    data: dict[str, Any] = {
        "version": VERSION,
        "program": program,
        "tools": list(outcome.tools),
        "errors": outcome.errors,
        "warnings": outcome.warnings,
        "hidden": outcome.hidden,
        "suppressed": outcome.suppressed,
        "complete": outcome.complete,
        "findings": [f.as_json() for f in outcome.findings],
    }
    return json.dumps(data, indent=2)
