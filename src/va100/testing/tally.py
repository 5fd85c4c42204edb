"""The kernels that tests launched: gathered test by test, told at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from va100.profile.report_schema import KernelGroup, LaunchReport
from va100.profile.table import report_json, table_text
from va100.units import time_text

_MOST_TESTS: Final = 20
"""Tests in the table; the file has all."""


@dataclass
class Tally:
    """Launches of a session, by test."""

    model: str
    gpu_count: int
    tests: dict[str, list[KernelGroup]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)

    def add(self, test: str, groups: Iterable[KernelGroup]) -> None:
        """Count what one phase of a test launched."""
        self.tests.setdefault(test, []).extend(groups)

    def end(self, test: str, outcome: str) -> None:
        """Note how a phase of a test ended; a failure of any is the test's."""
        if self.outcomes.get(test) != "failed":
            self.outcomes[test] = outcome

    def report(self, groups: Iterable[KernelGroup]) -> LaunchReport:
        """Some launches as a report, those alike as one group."""
        return LaunchReport(
            model=self.model, gpu_count=self.gpu_count, program="pytest", kernels=alike(groups)
        )

    def whole(self) -> LaunchReport:
        """Everything that was launched."""
        return self.report(group for groups in self.tests.values() for group in groups)

    def text(self, *, width: int) -> str:
        """The table of kernels, then the tests that take longest on an A100."""
        blocks = [table_text(self.whole(), width=width)]
        rows = sorted(self.tests.items(), key=lambda row: (-total_s(row[1]), row[0]))
        if rows:
            blocks.append("\n".join(_test_lines(rows, width)))
        return "\n\n".join(blocks)

    def json(self) -> str:
        """The same as JSON, in base units, with every test."""
        entry = json.loads(report_json(self.whole()))
        entry["tests"] = [self._entry(test) for test in sorted(self.tests)]
        return json.dumps(entry, indent=2)

    def _entry(self, test: str) -> Mapping[str, Any]:
        groups = self.tests[test]
        return {
            "test": test,
            "outcome": self.outcomes.get(test, ""),
            "launches": launches(groups),
            "total_s": total_s(groups),
            "kernels": json.loads(report_json(self.report(groups)))["kernels"],
        }


def alike(groups: Iterable[KernelGroup]) -> tuple[KernelGroup, ...]:
    """Join groups of launches that are alike in kernel, shape and device."""
    known: dict[tuple[Any, ...], KernelGroup] = {}
    for group in groups:
        key = (group.kernel, group.device, group.grid, group.block, group.dynamic_shared_bytes)
        before = known.get(key)
        known[key] = group if before is None else _sum(before, group)
    return tuple(known.values())


def launches(groups: Iterable[KernelGroup]) -> int:
    """Count them."""
    return sum(group.count for group in groups)


def total_s(groups: Iterable[KernelGroup]) -> float:
    """Time on an A100, one after the other."""
    return sum(group.total_s for group in groups)


def _sum(one: KernelGroup, other: KernelGroup) -> KernelGroup:
    count, total = one.count + other.count, one.total_s + other.total_s
    return replace(
        one,
        count=count,
        total_s=total,
        mean_s=total / count,
        min_s=min(one.min_s, other.min_s),
        max_s=max(one.max_s, other.max_s),
    )


def _test_lines(rows: Sequence[tuple[str, list[KernelGroup]]], width: int) -> list[str]:
    cells = [
        (str(launches(groups)), time_text(total_s(groups)), test)
        for test, groups in rows[:_MOST_TESTS]
    ]
    cells.insert(0, ("launches", "A100 time", "test"))
    widths = [max(len(row[column]) for row in cells) for column in (0, 1)]
    room = max(width - sum(widths) - 4, 20)
    lines = [
        f"{count.rjust(widths[0])}  {time.rjust(widths[1])}  {_end_of(test, room)}"
        for count, time, test in cells
    ]
    left = len(rows) - _MOST_TESTS
    return [*lines, f"and {left} more; --va100-report=FILE.json has all"] if left > 0 else lines


def _end_of(test: str, room: int) -> str:
    return test if len(test) <= room else f"..{test[2 - room :]}"
