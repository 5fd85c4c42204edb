"""Embedding tables: rows gathered, pooled and scattered at random.

A row is read in whole sectors wherever it lies, so short rows waste what they don't use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, find_chip
from va100.perf.operators.estimates import OperatorEstimate, filled
from va100.perf.operators.formats import element_bytes
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.streams import SECTOR_BYTES, Stream, stream_demand


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingEstimate(OperatorEstimate):
    """A lookup's predicted time."""

    bytes_per_s: float
    """Of rows used, not of sectors moved."""
    table_bytes: float


@lru_cache(maxsize=16384)
def estimate(
    lookups: int,
    dim: int,
    *,
    table_rows: int = 10_000_000,
    pooling: int = 1,
    dtype: str = "fp32",
    update: bool = False,
    chip: str = DEFAULT,
) -> EmbeddingEstimate:
    """Predict the time of ``lookups`` bags of ``pooling`` rows each.

    Parameters
    ----------
    dim : int
        Elements of a row.
    table_rows : int
        Rows of the table; a small one stays in L2.
    update : bool
        Rows are read, changed and written back, as after a backward pass.

    Raises
    ------
    ValueError
        A size below one, an unknown format or chip.
    """
    require_positive(lookups=lookups, dim=dim, table_rows=table_rows, pooling=pooling)
    target, size_bytes = find_chip(chip), element_bytes(dtype)
    row_bytes = dim * size_bytes
    sectors_bytes = ceil(row_bytes / SECTOR_BYTES) * SECTOR_BYTES
    table_bytes = float(table_rows) * row_bytes
    count = float(lookups) * pooling
    held = min(1.0, 0.75 * target.l2_bytes / table_bytes)
    touched = count * sectors_bytes * (2.0 if update else 1.0)
    index_bytes = count * 8.0
    stream = Stream(
        read_bytes=index_bytes,
        written_bytes=lookups * row_bytes if not update else 0.0,
        random_bytes=touched * (1.0 - held),
        operation_count=count * dim if pooling > 1 or update else 0.0,
        element_count=count * dim,
    )
    demand = stream_demand(stream, target)
    fields = filled(demand, target, bands.UNMEASURED, stream.operation_count)
    return EmbeddingEstimate(
        **fields,  # type: ignore[arg-type]
        bytes_per_s=count * row_bytes / float(fields["time_s"]),  # type: ignore[arg-type]
        table_bytes=table_bytes,
    )
