"""Whether 2:4 sparsity can pay for a product on an A100, and what stands in its way.

An upper bound, not a prediction: peak rates, every byte moved once, nothing else in the way.
What kernels reach of it is less: of a bound of 1.9, a published layer of 3072 x 10240 gained 1.4,
and small batches of BERT lost (docs/tensor-cores.md, "When sparsity pays").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from va100.numerics.mma_rules import rule
from va100.numerics.sparse_metadata import DEPTHS
from va100.numerics.sparsity import pattern_of
from va100.spec.a100 import A100_SXM4_80GB
from va100.spec.model import ChipSpec, MmaKind
from va100.spec.rates import memory_bytes_per_s, peak_flop_per_s

FIXED_S: Final = 5e-6
"""Least time of a kernel with its launch; an assumption."""
WORTH_TRYING: Final = 1.4
"""Bound below which published kernels' losses eat the gain."""
SMALL_BATCH: Final = 64
"""Columns of B below which published sparse layers lost."""
_TILE_ROWS, _TILE_COLUMNS = 128, 128
_MMA_KINDS: Final = {
    "f16": MmaKind.FP16,
    "bf16": MmaKind.BF16,
    "tf32": MmaKind.TF32,
    "s8": MmaKind.INT8,
    "u8": MmaKind.INT8,
    "s4": MmaKind.INT4,
    "u4": MmaKind.INT4,
}


@dataclass(frozen=True, slots=True)
class Advice:
    """What sparsity can gain at most for one product.

    ``pays`` is whether it is worth trying.  ``speedup_bound`` counts compression over ``uses``;
    ``padding`` is the work of whole products over the work asked for.
    """

    pays: bool
    speedup_bound: float
    dense_s: float
    sparse_s: float
    compress_s: float
    padding: float
    reasons: tuple[str, ...]


def advise(
    m: int,
    n: int,
    k: int,
    *,
    kind: str = "f16.f32",
    uses: int = 1000,
    chip: ChipSpec = A100_SXM4_80GB,
) -> Advice:
    """Bound the gain of a sparse (m, k) weight times (k, n), compressed once for ``uses`` products.

    Raises
    ------
    ValueError
        A size is not positive, or the kind has no sparse form.
    """
    if min(m, n, k, uses) < 1:
        raise ValueError("m, n, k and uses are positive")
    pattern = pattern_of(kind)
    name = kind.split(".", maxsplit=1)[0]
    bits = _element_bits(kind)
    depth = max(DEPTHS[bits])
    rows, columns, deep = (_whole(m, 16), _whole(n, 8), _whole(k, depth))
    peak = peak_flop_per_s(chip, _MMA_KINDS[name])
    peak_sparse = peak_flop_per_s(chip, _MMA_KINDS[name], sparse=True)
    rate = memory_bytes_per_s(chip)
    element, result = bits / 8, 2.0 if kind == "f16.f16" else 4.0
    weight = m * k * element
    packed = weight / 2 + m * k / pattern.width / 2
    rest = k * n * element + m * n * result
    dense_flops, sparse_flops = 2.0 * m * n * k, 2.0 * rows * columns * deep
    dense_s = max(dense_flops / peak, (weight + rest) / rate, FIXED_S)
    sparse_s = max(sparse_flops / peak_sparse, (packed + rest) / rate, FIXED_S)
    compress_s = max((weight + packed) / rate, FIXED_S)
    bound = dense_s / (sparse_s + compress_s / uses)
    padding = sparse_flops / dense_flops
    facts = _Facts(m, n, k, dense_s, sparse_s, compress_s / uses, padding, depth)
    reasons = tuple(_reasons(facts, (packed + rest) / rate > sparse_flops / peak_sparse))
    pays = bound >= WORTH_TRYING and n >= SMALL_BATCH and n % 8 == 0
    return Advice(pays, bound, dense_s, sparse_s, compress_s, padding, reasons)


@dataclass(frozen=True, slots=True)
class _Facts:
    m: int
    n: int
    k: int
    dense_s: float
    sparse_s: float
    compress_s: float
    padding: float
    depth: int


def _reasons(f: _Facts, memory_bound: bool) -> Iterator[str]:  # noqa: FBT001
    if f.dense_s <= FIXED_S:
        yield f"the dense product takes no longer than a launch (about {FIXED_S * 1e6:.0f} us)"
    if f.padding > 1.05:
        yield (
            f"padding to whole products of 16 x 8 x {f.depth} adds "
            f"{(f.padding - 1) * 100:.0f} % of work"
        )
    if f.n < SMALL_BATCH:
        yield f"n = {f.n} is a small batch: published sparse layers lost below {SMALL_BATCH}"
    if f.n % 8:
        yield f"n = {f.n} is no multiple of 8: libraries pad it or refuse"
    if f.compress_s > 0.05 * f.sparse_s:
        yield (
            f"compression costs {f.compress_s / f.sparse_s * 100:.0f} % of a product, spread "
            "over its uses"
        )
    if memory_bound:
        yield "memory bounds it: only the bytes of the weight shrink, to little over half"
    tiles = -(-f.m // _TILE_ROWS) * -(-f.n // _TILE_COLUMNS)
    if tiles < 54:
        yield f"{tiles} tiles of 128 x 128 leave most of the chip's SMs idle"
    yield "kernels reach less than the bound; measure before relying on it"


def _element_bits(kind: str) -> int:
    row = rule(kind)
    if row.element_bits:
        return row.element_bits
    return row.operand.bits if row.operand is not None else 0


def _whole(x: int, unit: int) -> int:
    return -(-x // unit) * unit
