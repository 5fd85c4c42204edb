"""A program's kernels as a table for terminals, or as JSON for tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from va100.driver.names import short_name
from va100.profile.report_schema import KernelGroup, LaunchReport, ReportFault
from va100.units import time_text
from va100.work import Dim3

_TITLES: Final = ("kernel", "grid", "block", "count", "A100 time", "mean", "bound by", "occupancy")
_RIGHT: Final = frozenset({3, 4, 5, 7})
"""Columns of numbers."""
_GAP: Final = "  "
_LEAST_NAME: Final = 12
_LEAST_TAIL: Final = 4
"""Of a name that is cut, the least to show of its end."""
_LEAST_WIDTH: Final = 40
CAVEAT: Final = "first estimate from counted instructions and bytes, not a measurement"


def table_text(report: LaunchReport, *, width: int) -> str:
    """Lay out the kernels, the longest total first, in lines of at most ``width`` columns.

    Columns that do not fit leave from the right, and names are shortened in the middle; under 40
    columns nothing more is taken away.
    """
    if not report.kernels:
        nothing = ["no kernel was launched"] if report.complete else []
        return "\n".join([*nothing, *_remarks(report)])
    kernels = sorted(report.kernels, key=lambda group: -group.total_s)
    rows = [_TITLES, *(_row(group) for group in kernels)]
    lines = _laid_out(_columns_that_fit(rows, max(width, _LEAST_WIDTH)), width)
    rule = "-" * max(len(line) for line in lines)
    return "\n".join([lines[0], rule, *lines[1:], rule, *_closing(report)])


def report_json(report: LaunchReport) -> str:
    """Spell a report as JSON, in base units."""
    summary: dict[str, Any] = {
        "model": report.model,
        "gpu_count": report.gpu_count,
        "program": report.program,
        "estimate": CAVEAT,
        "kernels": [_kernel_entry(group) for group in report.kernels],
        "faults": [_fault_entry(fault) for fault in report.faults],
        "notes": list(report.notes),
    }
    return json.dumps(summary, indent=2)


def extent_text(extent: Dim3) -> str:
    """Spell an extent without its trailing ones: ``64x64``."""
    spelled = [str(extent.x), str(extent.y), str(extent.z)]
    while len(spelled) > 1 and spelled[-1] == "1":
        spelled.pop()
    return "x".join(spelled)


def _row(group: KernelGroup) -> tuple[str, ...]:
    return (
        short_name(group.kernel),
        extent_text(group.grid),
        extent_text(group.block),
        str(group.count),
        time_text(group.total_s),
        time_text(group.mean_s),
        group.bound_by or "?",
        f"{group.occupancy:.0%}" if group.occupancy else "?",
    )


def _columns_that_fit(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Drop columns from the right until a name keeps its least width."""
    kept = len(rows[0])
    while kept > 1:
        widths = [max(len(row[column]) for row in rows) for column in range(1, kept)]
        least_name = min(_LEAST_NAME, max(len(row[0]) for row in rows))
        if least_name + sum(widths) + len(_GAP) * (kept - 1) <= width:
            break
        kept -= 1
    return [list(row[:kept]) for row in rows]


def _laid_out(rows: list[list[str]], width: int) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    others = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(width - others, _LEAST_NAME))
    return [_line(row, widths) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [_shortened(row[0], widths[0]).ljust(widths[0])]
    for column in range(1, len(row)):
        cell, wide = row[column], widths[column]
        cells.append(cell.rjust(wide) if column in _RIGHT else cell.ljust(wide))
    return _GAP.join(cells).rstrip()


def _shortened(name: str, width: int) -> str:
    """Leave out what tells kernels apart least: namespaces, then the middle of what is left.

    The function's own name stays whole while it fits, and the last template arguments, too.
    """
    if len(name) <= width:
        return name
    own, bracket, arguments = name.partition("<")
    name = own.rpartition("::")[2] + bracket + arguments
    if len(name) <= width:
        return name
    head = max((width - 2) // 2, min(len(name.partition("<")[0]), width - 2 - _LEAST_TAIL))
    return f"{name[:head]}..{name[len(name) - (width - 2 - head) :]}"


def _closing(report: LaunchReport) -> list[str]:
    """Say the total and what to know."""
    launches = sum(group.count for group in report.kernels)
    total_s = sum(group.total_s for group in report.kernels)
    counted = f"{launches} launch{'' if launches == 1 else 'es'}"
    on = f" on {report.model}" if report.model else ""
    return [f"{counted}, {time_text(total_s)}{on} ({CAVEAT})", *_remarks(report)]


def _remarks(report: LaunchReport) -> list[str]:
    """What to know: of a fault only where, as the driver told it when it happened."""
    assumed = {note for group in report.kernels for note in group.assumed}
    notes = [f"note: {note}" for note in (*sorted(assumed), *report.notes)]
    return notes + [_fault_text(fault) for fault in report.faults]


def _fault_text(fault: ReportFault) -> str:
    name = short_name(fault.kernel) or "a kernel"
    return f"fault: {name} was stopped, as told above; its time is that of the part that ran"


def _fault_entry(fault: ReportFault) -> dict[str, Any]:
    return {"kernel": fault.kernel, "name": short_name(fault.kernel), "text": fault.text}


def _kernel_entry(group: KernelGroup) -> dict[str, Any]:
    return {
        "kernel": group.kernel,
        "name": short_name(group.kernel),
        "device": group.device,
        "grid": list(group.grid),
        "block": list(group.block),
        "dynamic_shared_bytes": group.dynamic_shared_bytes,
        "registers": group.registers,
        "shared_bytes": group.shared_bytes,
        "count": group.count,
        "total_s": group.total_s,
        "mean_s": group.mean_s,
        "min_s": group.min_s,
        "max_s": group.max_s,
        "bound_by": group.bound_by,
        "occupancy": group.occupancy,
        "waves": group.waves,
        "parts": dict(group.parts),
        "assumed": list(group.assumed),
    }
