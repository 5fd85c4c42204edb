"""Element-wise work, norms, softmax, copies: streams of bytes with a few operations each.

A row of :data:`KINDS` says how often an element is read and written and what is reckoned on it.
What is not here: products (:mod:`~va100.perf.operators.gemm`) and gathers
(:mod:`~va100.perf.operators.embedding`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, find_chip
from va100.perf.operators.estimates import OperatorEstimate, filled
from va100.perf.operators.formats import element_bytes
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.launches import launched
from va100.perf.operators.streams import Stream, stream_demand
from va100.units import US


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementwiseEstimate(OperatorEstimate):
    """A stream's predicted time."""

    bytes_per_s: float
    """Read and written together."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What one element costs."""

    read_count: float
    """Elements read for each written."""
    write_count: float
    operation_count: float
    special_count: float
    """Exponentials, reciprocals, roots."""
    long_row_ratio: float = 1.0
    """Time of rows of more than 1,024 elements, which are gone over more than once, of a pass."""
    short_row_ratio: float = 1.0
    host_s: float = 0.0
    """What an eager call of it takes beyond a plain one's."""


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "copy": Kind(1, 1, 0, 0),
        "fill": Kind(0, 1, 0, 0),
        "cast": Kind(1, 1, 1, 0),
        "transpose": Kind(1, 1, 0, 0),
        "scale": Kind(1, 1, 1, 0),
        "relu": Kind(1, 1, 1, 0),
        "dropout": Kind(1, 1.25, 8, 0),
        "gelu": Kind(1, 1, 11, 1),
        "silu": Kind(1, 1, 4, 2),
        "tanh": Kind(1, 1, 6, 2),
        "sigmoid": Kind(1, 1, 3, 2),
        "exp": Kind(1, 1, 2, 1),
        "square": Kind(1, 1, 1, 0),
        "pow_scalar": Kind(1, 1, 20, 2),
        "pow": Kind(2, 1, 20, 2),
        "add": Kind(2, 1, 1, 0),
        "mul": Kind(2, 1, 1, 0),
        "div": Kind(2, 1, 8, 1),
        "gated": Kind(2, 1, 6, 2),
        "rope": Kind(1, 1, 6, 0),
        "bias_gelu": Kind(1, 1, 12, 1),
        "dropout_add": Kind(2, 1.25, 9, 0),
        "softmax": Kind(1, 1, 4, 1, 1.45, 1.06),
        "softmax_backward": Kind(2, 1, 4, 0, 1.45, 1.06),
        "layernorm": Kind(1, 1, 8, 0, 1.35, 1.35, 27 * US),
        "layernorm_backward": Kind(2, 1, 16, 0, 1.35, 1.35),
        "rmsnorm": Kind(1, 1, 6, 0, 1.35, 1.35),
        "add_rmsnorm": Kind(2, 2, 7, 0),
        "add_layernorm": Kind(2, 2, 9, 0),
        "batchnorm": Kind(1, 1, 2, 0),
        "reduce": Kind(1, 0, 1, 0),
        "cross_entropy": Kind(1, 1, 5, 1),
        "adam": Kind(7, 6, 12, 2),
        "sgd": Kind(3, 2, 4, 0),
    }
)
"""``adam`` and ``sgd`` count 4-byte words a parameter: master weight, moments, gradient.  What long
rows cost is fitted to PyTorch's kernels (NEUSIGHT)."""
LONG_ROW: Final = 1024
"""Elements of a row beyond which a warp's registers no longer hold it."""


@lru_cache(maxsize=65536)
def estimate(
    op: str,
    rows: int,
    cols: int = 1,
    *,
    dtype: str = "bf16",
    warm: bool = False,
    launch: str = "graph",
    chip: str = DEFAULT,
) -> ElementwiseEstimate:
    """Predict the time of one pass over ``rows x cols`` elements.

    Parameters
    ----------
    op : str
        A name of :data:`KINDS`.
    cols : int
        Elements of a row, which is what norms and softmax go over.
    warm : bool
        The same data were gone over just before, so that L2 may hold them.
    launch : str
        How the kernel is started, a name of :data:`va100.perf.operators.launches.LAUNCHES`.

    Raises
    ------
    ValueError
        An unknown kind, format, launch or chip, a size below one.
    """
    require_positive(rows=rows, cols=cols)
    kind = KINDS.get(op)
    if kind is None:
        raise ValueError(f"op {op!r} is not one of {', '.join(KINDS)}")
    target, size_bytes = find_chip(chip), element_bytes(dtype)
    count = float(rows) * cols
    stream = Stream(
        read_bytes=count * kind.read_count * size_bytes,
        written_bytes=count * kind.write_count * size_bytes,
        operation_count=count * kind.operation_count,
        special_count=count * kind.special_count,
        element_count=count,
        pass_ratio=kind.long_row_ratio if cols > LONG_ROW else kind.short_row_ratio,
        warm=warm,
    )
    demand = launched(stream_demand(stream, target), launch, target)
    if launch == "eager":
        demand = replace(demand, fixed_s=demand.fixed_s + kind.host_s)
    family = bands.BY_ROW if kind.short_row_ratio > 1.0 else bands.VECTOR
    fields = filled(demand, target, family, count * kind.operation_count)
    return ElementwiseEstimate(
        **fields,  # type: ignore[arg-type]
        bytes_per_s=stream.moved_bytes / float(fields["time_s"]),  # type: ignore[arg-type]
    )
