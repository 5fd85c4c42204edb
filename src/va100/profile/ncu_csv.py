"""Launches as comma-separated values, laid out as NVIDIA's kernel profiler does.

Units are base units, as with its ``--print-units base``, and numbers carry no thousands mark.  What
could not be counted reads ``n/a``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from va100.profile.launch import Launch
from va100.profile.metrics import Metric, values
from va100.profile.quantities import quantities
from va100.profile.report_schema import issues_of
from va100.spec.model import ChipSpec

PAGES: Final = ("details", "raw", "source")
_LAUNCH_COLUMNS: Final = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC",
)  # fmt: skip
_METRIC_COLUMNS: Final = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_HOST: Final = "127.0.0.1"
_CONTEXT: Final = 1
"""There is one context a device, and it is the first."""
UNKNOWN: Final = "n/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Whose launches they are."""

    name: str
    process: int = 0


def details_csv(
    launches: Sequence[Launch], metrics: Sequence[Metric], program: Program, chip: ChipSpec
) -> str:
    """One row a launch and metric."""
    rows: list[Sequence[str]] = [(*_LAUNCH_COLUMNS, *_METRIC_COLUMNS)]
    for number, launch in enumerate(launches):
        who = _launch_cells(number, launch, program, chip)
        found = values(metrics, quantities(launch, chip))
        rows += [
            (*who, metric.section, metric.name, metric.unit, number_text(found[metric.name]))
            for metric in metrics
        ]
    return _csv(rows)


def raw_csv(
    launches: Sequence[Launch], metrics: Sequence[Metric], program: Program, chip: ChipSpec
) -> str:
    """One row a launch and one column a metric; the second row holds the units."""
    rows: list[Sequence[str]] = [
        (*_LAUNCH_COLUMNS, *(metric.name for metric in metrics)),
        (*("" for _ in _LAUNCH_COLUMNS), *(metric.unit for metric in metrics)),
    ]
    for number, launch in enumerate(launches):
        found = values(metrics, quantities(launch, chip))
        cells = (number_text(found[metric.name]) for metric in metrics)
        rows.append((*_launch_cells(number, launch, program, chip), *cells))
    return _csv(rows)


_SOURCE_COLUMNS: Final = (
    ("Instructions Executed", ""),
    ("Thread Instructions Executed", "thread_instructions"),
    ("Global Requests", "global_requests"),
    ("Global Sectors", "global_sectors"),
    ("Global Load Bytes", "global_load_bytes"),
    ("Global Store Bytes", "global_store_bytes"),
    ("Shared Requests", "shared_requests"),
    ("Shared Wavefronts", "shared_wavefronts"),
    ("Atomic Requests", "atomic_requests"),
    ("Barriers", "barrier_instructions"),
    ("Branches", "branches"),
)
"""Titles and counters of a line; the first is of all pipes together."""


def source_csv(launches: Sequence[Launch]) -> str:
    """One row a launch and source line; titles are the profiler's where it has the column."""
    titles = [title for title, _ in _SOURCE_COLUMNS]
    rows: list[Sequence[str]] = [("ID", "Kernel Name", "File", "Line", "Source", *titles)]
    for number, launch in enumerate(launches):
        for line in launch.lines:
            counted = [float(line.counters.get(name, 0.0)) for _, name in _SOURCE_COLUMNS[1:]]
            cells = [number_text(value) for value in (issues_of(line), *counted)]
            where = (line.file or "PTX", str(line.line), line.text)
            rows.append((str(number), launch.name, *where, *cells))
    return _csv(rows)


def number_text(value: float | None) -> str:
    """Spell a number in full, with no more than six decimals."""
    if value is None:
        return UNKNOWN
    if float(value).is_integer():
        return str(int(value))
    text = f"{value:.6f}".rstrip("0")
    return text if text.strip("-0.") else f"{value:.6g}"


def _launch_cells(number: int, launch: Launch, program: Program, chip: ChipSpec) -> tuple[str, ...]:
    major, minor = chip.compute_capability
    return (
        str(number), str(program.process), program.name, _HOST, launch.name, str(_CONTEXT),
        str(launch.stream), str(launch.block), str(launch.grid), str(launch.device),
        f"{major}.{minor}",
    )  # fmt: skip


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue().removesuffix("\n")
