"""Operators of data bases on columns in device memory: sort, scan, filter, join, group-by.

Each is passes over columns and rows at random; no measurement of them was at hand, so the bands are
wide.  Copies to and from the host are not in the times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import Final

from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import OperatorEstimate, filled
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.streams import SECTOR_BYTES, Stream, missed_ratio, stream_demand


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsEstimate(OperatorEstimate):
    """A data-base operator's predicted time."""

    rows_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What an operator goes over."""

    rows: int
    key_bytes: int
    value_bytes: int
    other_rows: int
    """Of the built side of a join; groups of a group-by."""
    kept_ratio: float
    """Of rows that a filter or join lets through."""


RADIX_BITS: Final = 8
SLOT_RATIO: Final = 2.0
"""Slots of a hash table over its entries."""


@lru_cache(maxsize=8192)
def estimate(
    op: str,
    rows: int,
    *,
    key_bytes: int = 4,
    value_bytes: int = 4,
    other_rows: int = 1,
    kept_ratio: float = 1.0,
    chip: str = DEFAULT,
) -> AnalyticsEstimate:
    """Predict the time of one operator over ``rows`` rows.

    Parameters
    ----------
    op : str
        ``sort``, ``scan``, ``reduce``, ``filter``, ``join`` or ``group_by``.
    other_rows : int
        Rows of the side that a join builds its table of, groups of a group-by.
    kept_ratio : float
        Of rows that a filter or join lets through, 0 to 1.

    Raises
    ------
    ValueError
        An unknown operator or chip, a size out of range.
    """
    if op not in OPERATORS:
        raise ValueError(f"op {op!r} is not one of {', '.join(OPERATORS)}")
    require_positive(rows=rows, key_bytes=key_bytes, other_rows=other_rows)
    if value_bytes < 0 or not 0.0 <= kept_ratio <= 1.0:
        raise ValueError(
            f"value_bytes must be 0 or more and kept_ratio 0 to 1, not {value_bytes}, {kept_ratio}"
        )
    table = Table(
        rows=rows,
        key_bytes=key_bytes,
        value_bytes=value_bytes,
        other_rows=other_rows,
        kept_ratio=kept_ratio,
    )
    target = find_chip(chip)
    stream = OPERATORS[op](table, target)
    fields = filled(stream_demand(stream, target), target, bands.UNMEASURED, stream.operation_count)
    return AnalyticsEstimate(
        **fields,  # type: ignore[arg-type]
        rows_per_s=rows / float(fields["time_s"]),  # type: ignore[arg-type]
    )


def _sort(table: Table, chip: Chip) -> Stream:
    """Least significant digit first: a count, then a pass that moves every row, for each digit."""
    digits = ceil(table.key_bytes * 8 / RADIX_BITS)
    row = table.key_bytes + table.value_bytes
    return Stream(
        read_bytes=float(table.rows) * (row * digits + table.key_bytes),
        written_bytes=float(table.rows) * row * digits,
        operation_count=float(table.rows) * digits * 12.0,
        element_count=float(table.rows),
        launch_count=digits + 2,
    )


def _scan(table: Table, chip: Chip) -> Stream:
    """Prefix sums in one pass, each tile waiting for the sums of those before."""
    moved = float(table.rows) * table.value_bytes
    return Stream(read_bytes=moved, written_bytes=moved, operation_count=2.0 * table.rows)


def _reduce(table: Table, chip: Chip) -> Stream:
    return Stream(
        read_bytes=float(table.rows) * table.value_bytes,
        written_bytes=0.0,
        operation_count=float(table.rows),
        launch_count=2,
    )


def _filter(table: Table, chip: Chip) -> Stream:
    row = float(table.key_bytes + table.value_bytes)
    return Stream(
        read_bytes=table.rows * row,
        written_bytes=table.rows * row * table.kept_ratio,
        operation_count=4.0 * table.rows,
        launch_count=2,
    )


def _join(table: Table, chip: Chip) -> Stream:
    """Build a hash table of one side, and look every row of the other up in it."""
    row = float(table.key_bytes + table.value_bytes)
    slots = table.other_rows * row * SLOT_RATIO
    missed = missed_ratio(slots, chip)
    touched = max(SECTOR_BYTES, row)
    strayed = (2.0 * table.other_rows + table.rows) * touched * missed
    return Stream(
        read_bytes=(table.rows + table.other_rows) * row,
        written_bytes=table.rows * table.kept_ratio * (row + table.value_bytes),
        random_bytes=strayed,
        operation_count=20.0 * (table.rows + table.other_rows),
        launch_count=3,
    )


def _group_by(table: Table, chip: Chip) -> Stream:
    """Add every row to its group's entry, which is read and written where L2 lacks it."""
    row = float(table.key_bytes + table.value_bytes)
    slots = table.other_rows * row * SLOT_RATIO
    return Stream(
        read_bytes=table.rows * row,
        written_bytes=table.other_rows * row,
        random_bytes=2.0 * table.rows * max(SECTOR_BYTES, row) * missed_ratio(slots, chip),
        operation_count=20.0 * table.rows,
        launch_count=2,
    )


OPERATORS: Final[Mapping[str, Callable[[Table, Chip], Stream]]] = MappingProxyType(
    {
        "sort": _sort,
        "scan": _scan,
        "reduce": _reduce,
        "filter": _filter,
        "join": _join,
        "group_by": _group_by,
    }
)
"""By name."""
