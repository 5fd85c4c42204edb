"""Matrix products: ``m x k`` activations times ``k x n`` weights, in every format of the chip.

The library's choice is imitated, not looked up: each tile shape and each split of ``k`` is timed,
and the quickest taken (:mod:`va100.perf.operators.tiles`).  Here are the formats, alignment, 2:4
sparsity and what is said of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from va100.perf.operators import bands
from va100.perf.operators.bands import Family
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import OperatorEstimate, filled
from va100.perf.operators.formats import find_format
from va100.perf.operators.launches import launched
from va100.perf.operators.tiles import (
    SPARSE_COPY_S,
    SPARSE_ROWS,
    Product,
    Tiling,
    demand_of,
    quickest,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmEstimate(OperatorEstimate):
    """A product's predicted time."""

    tile: tuple[int, int]
    """Rows and columns of the result that one CTA makes."""
    split_k: int
    """CTAs that share one tile's sum."""
    cta_count: int
    wave_count: float


@lru_cache(maxsize=65536)
def estimate(
    m: int,
    n: int,
    k: int,
    *,
    batch: int = 1,
    dtype: str = "bf16",
    sparse: bool = False,
    launch: str = "graph",
    chip: str = DEFAULT,
) -> GemmEstimate:
    """Predict the time of ``batch`` products, each of ``m x k`` and ``k x n``.

    Parameters
    ----------
    dtype : str
        A name of :data:`va100.perf.operators.formats.FORMATS`; ``w8a16`` and ``w4a16`` hold weights
        packed and multiply in half precision.
    sparse : bool
        The weights are 2:4 sparse and already compressed.
    launch : str
        How the kernel is started, a name of :data:`va100.perf.operators.launches.LAUNCHES`.

    Raises
    ------
    ValueError
        A size below one, an unknown format, launch or chip, a format the chip does not multiply.
    """
    require_positive(m=m, n=n, k=k, batch=batch)
    target, number = find_chip(chip), find_format(dtype)
    rows = -(-m // SPARSE_ROWS) * SPARSE_ROWS if sparse else m
    product = Product(m=rows, n=n, k=k, batch=batch, number=number, sparse=sparse)
    tiling = quickest(product, target)
    notes: tuple[str, ...] = ()
    if rows > m:
        tiling = padded(tiling)
        notes = (f"padded from {m} to {rows} rows, with a copy before and after",)
    return _estimate(product, tiling, target, launch, notes)


def _estimate(
    product: Product, tiling: Tiling, chip: Chip, launch: str, notes: tuple[str, ...]
) -> GemmEstimate:
    kernels = 3 if notes else 1
    demand = launched(demand_of(product, tiling, chip), launch, chip, kernels)
    fields = filled(demand, chip, _family(product), product.flop_count, notes)
    return GemmEstimate(
        **fields,  # type: ignore[arg-type]
        tile=(tiling.rows, tiling.columns),
        split_k=tiling.split,
        cta_count=tiling.cta_count,
        wave_count=tiling.wave_count,
    )


def _family(product: Product) -> Family:
    """Measured products that this one is like; formats that were not measured have the widest."""
    number = product.number
    if product.sparse:
        return bands.SPARSE
    if number.weight_only:
        return bands.PACKED8 if number.weight_bytes == 1.0 else bands.PACKED4
    if number.activation_bytes < 2.0:
        return bands.EIGHT_BIT if number.name == "int8" else bands.UNMEASURED
    if number.on_tensor_cores:
        return bands.PRODUCTS if number.activation_bytes == 2.0 else bands.UNMEASURED
    return bands.ORDINARY if product.batch == 1 else bands.ORDINARY_BATCHED


def padded(tiling: Tiling) -> Tiling:
    """A sparse product's way with the copies that pad and cut its dense operands."""
    copies_s = 2.0 * SPARSE_COPY_S
    return tiling._replace(total_s=tiling.total_s + copies_s, fixed_s=tiling.fixed_s + copies_s)


def require_positive(**sizes: int) -> None:
    """Refuse sizes below one, by name."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be 1 or more, not {size}")
