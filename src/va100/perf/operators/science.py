"""Kernels of scientific codes: FFT, stencil, sparse matrix times vector, N-body, pair forces, HPL.

Each is what it moves and what it reckons, over the same streams and tiles as the other operators.
Only stencils and sparse products were measured; of the others the parts were (DRAM, FP32, products
in FP64), not the whole, and the band says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2
from types import MappingProxyType
from typing import Final

from va100.perf.kernel import Bound
from va100.perf.operators import bands
from va100.perf.operators.bands import Family
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import Demand, OperatorEstimate, filled
from va100.perf.operators.formats import element_bytes, find_format
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.streams import (
    LAUNCH_S,
    SECTOR_BYTES,
    Stream,
    missed_ratio,
    stream_demand,
)
from va100.perf.operators.tiles import Product, demand_of, quickest
from va100.spec.model import Operation
from va100.units import US


@dataclass(frozen=True, slots=True, kw_only=True)
class ScienceEstimate(OperatorEstimate):
    """A scientific kernel's predicted time."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A demand, what it reckons, and how well its kind was measured."""

    demand: Demand
    flop_count: float
    family: Family


FFT_LOCAL: Final = 4096
"""Points that a CTA transforms in shared memory in one pass."""
FFT_RATIO: Final = 0.5
"""Of the peak by butterflies.  Assumed."""
STENCIL_RATIO: Final = 0.94
"""Of a stream's rate by stencils and lattice methods; fitted to one of them (FLUIDX3D)."""
SPMV_RATIO: Final = 0.62
"""Of the reading rate by rows of a sparse matrix; fitted (GINKGO)."""
SPMV_CACHE_RATIO: Final = 0.3
"""Of L2's rate likewise."""
SPMV_LAUNCH_S: Final = 7.8 * US
SPMV_ROW_BYTES: Final = 24.0
"""What starting a row costs, in bytes read; fitted (GINKGO)."""
SPMV_LOCALITY: Final = 0.9
"""Of a vector's elements that L2 or a sector still holds when they come again; fitted (GINKGO)."""
NBODY_FLOP: Final = 20
NBODY_SPECIAL: Final = 1
"""Operations of one pair of bodies, and reciprocal square roots among them."""
NBODY_RATIO: Final = 0.7
"""Of the peak.  Assumed."""
PAIR_FLOP: Final = 55
PAIR_RATIO: Final = 0.35
"""Operations of one pair of atoms within reach, and the share of the peak: neighbours are gathered,
and lanes beyond reach idle.  Assumed."""
HPL_BLOCK: Final = 1024
HPL_ALIGNED: Final = 128
HPL_OTHER_RATIO: Final = 0.08
"""Of the time beside the updates: panels, swaps, broadcasts.  Assumed."""


def estimate(
    kind: str, *, dtype: str | None = None, chip: str = DEFAULT, **sizes: int
) -> ScienceEstimate:
    """Predict the time of one scientific kernel.

    Parameters
    ----------
    kind : str
        ``fft`` (``n``, ``batch``, ``dims``), ``stencil`` (``points``, ``reads``, ``writes``,
        ``flops`` of each point, ``steps``), ``spmv`` (``rows``, ``cols``, ``nnz``), ``nbody``
        (``bodies``), ``pair_force`` (``atoms``, ``neighbours``), ``hpl`` (``n``).
    dtype : str, optional
        Single precision, but double in ``spmv`` and ``hpl``, without it.

    Raises
    ------
    ValueError
        An unknown kind, size, format or chip, a size that lacks or is below one.
    """
    return _estimate(kind, dtype, chip, tuple(sorted(sizes.items())))


@lru_cache(maxsize=8192)
def _estimate(
    kind: str, dtype: str | None, chip: str, sizes: tuple[tuple[str, int], ...]
) -> ScienceEstimate:
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is not one of {', '.join(KINDS)}")
    row = KINDS[kind]
    given = dict(row.defaults) | dict(sizes)
    unknown = sorted(set(given) - set(row.sizes))
    lacking = [name for name in row.sizes if name not in given]
    if unknown or lacking:
        wrong = f"no {', '.join(unknown)}" if unknown else f"{', '.join(lacking)} too"
        raise ValueError(f"{kind} takes {', '.join(row.sizes)}: {wrong}")
    require_positive(**{name: size for name, size in given.items() if name != "flops"})
    target = find_chip(chip)
    asked = row.ask(given, dtype or row.dtype, target)
    return ScienceEstimate(
        **filled(asked.demand, target, asked.family, asked.flop_count),  # type: ignore[arg-type]
        kind=kind,
    )


def _fft(sizes: Mapping[str, int], dtype: str, chip: Chip) -> Asked:
    """Complex to complex, over each dimension of ``n`` points in turn."""
    each = 2.0 * element_bytes(dtype)
    points = float(sizes["n"]) ** sizes["dims"] * sizes["batch"]
    passes = ceil(log2(max(sizes["n"], 2)) / log2(FFT_LOCAL)) * sizes["dims"]
    flop_count = 5.0 * points * log2(max(sizes["n"], 2)) * sizes["dims"]
    stream = Stream(
        read_bytes=points * each * passes,
        written_bytes=points * each * passes,
        operation_count=flop_count / 2.0 / FFT_RATIO,
        element_count=points,
        launch_count=passes,
    )
    return Asked(demand=stream_demand(stream, chip), flop_count=flop_count, family=bands.UNMEASURED)


def _stencil(sizes: Mapping[str, int], dtype: str, chip: Chip) -> Asked:
    """Neighbours are read once a sweep: caches keep them from one row to the next."""
    each = element_bytes(dtype)
    steps = sizes["steps"]
    points = float(sizes["points"]) * steps
    stream = Stream(
        read_bytes=points * sizes["reads"] * each,
        written_bytes=points * sizes["writes"] * each,
        operation_count=points * sizes["flops"] / 2.0,
        element_count=points,
        pass_ratio=1.0 / STENCIL_RATIO,
        launch_count=steps,
    )
    return Asked(
        demand=stream_demand(stream, chip),
        flop_count=points * sizes["flops"],
        family=bands.STENCIL,
    )


def _spmv(sizes: Mapping[str, int], dtype: str, chip: Chip) -> Asked:
    """Compressed rows; the vector is gathered, in sectors where it is larger than L2."""
    each = element_bytes(dtype)
    rows, cols, nnz = (float(sizes[name]) for name in ("rows", "cols", "nnz"))
    streamed = nnz * (each + 4.0) + rows * (4.0 + each + SPMV_ROW_BYTES) + cols * each
    strayed = nnz * (1.0 - SPMV_LOCALITY) * SECTOR_BYTES * missed_ratio(cols * each, chip)
    moved = streamed + strayed
    missed = missed_ratio(moved, chip)
    rate = chip.dram_reached_bytes_per_s * SPMV_RATIO
    demand = Demand(
        operations={_unit(dtype): 2.0 * nnz},
        sm_s=0.0,
        sm_bound=Bound.LATENCY,
        memory_s=moved
        * (missed / rate + (1.0 - missed) / (chip.l2_bytes_per_s * SPMV_CACHE_RATIO)),
        fixed_s=SPMV_LAUNCH_S,
        dram_bytes=moved * missed,
        l2_bytes=moved,
    )
    return Asked(demand=demand, flop_count=2.0 * nnz, family=bands.SPMV)


def _nbody(sizes: Mapping[str, int], dtype: str, chip: Chip) -> Asked:
    pairs = float(sizes["bodies"]) ** 2
    return _pairs(pairs, (NBODY_FLOP, NBODY_SPECIAL), NBODY_RATIO, dtype, chip)


def _pair_force(sizes: Mapping[str, int], dtype: str, chip: Chip) -> Asked:
    pairs = float(sizes["atoms"]) * sizes["neighbours"]
    return _pairs(pairs, (PAIR_FLOP, 2), PAIR_RATIO, dtype, chip)


def _pairs(pairs: float, each: tuple[int, int], ratio: float, dtype: str, chip: Chip) -> Asked:
    flop, special = each
    unit = _unit(dtype)
    peak = chip.peak_flop_per_s[unit]
    special_s = pairs * special / (16.0 * chip.sm_count * chip.clock_hz)
    demand = Demand(
        operations={unit: pairs * flop, Operation.SPECIAL: pairs * special},
        sm_s=max(pairs * flop / (peak * ratio), special_s),
        sm_bound=Bound.FP64 if unit is Operation.FP64_FMA else Bound.FMA,
        memory_s=0.0,
        fixed_s=LAUNCH_S,
        dram_bytes=0.0,
        l2_bytes=pairs * element_bytes(dtype) / 32.0,
    )
    return Asked(demand=demand, flop_count=pairs * flop, family=bands.UNMEASURED)


def _hpl(sizes: Mapping[str, int], dtype: str, chip: Chip) -> Asked:
    """Dense elimination on one chip: updates as products, block by block."""
    n = sizes["n"]
    number = find_format(dtype)
    half = max(n * 10 // 19 // HPL_ALIGNED * HPL_ALIGNED, 1)
    product = Product(m=half, n=half, k=min(HPL_BLOCK, n), batch=1, number=number)
    tiling = quickest(product, chip)
    flop_count = 2.0 / 3.0 * float(n) ** 3
    share = flop_count / product.flop_count
    one = demand_of(product, tiling, chip)
    demand = Demand(
        operations={unit: count * share for unit, count in one.operations.items()},
        sm_s=one.sm_s * share,
        sm_bound=one.sm_bound,
        memory_s=one.memory_s * share,
        fixed_s=one.sm_s * share * HPL_OTHER_RATIO + ceil(n / HPL_BLOCK) * one.fixed_s,
        dram_bytes=one.dram_bytes * share,
        l2_bytes=one.l2_bytes * share,
        exponent=one.exponent,
    )
    return Asked(demand=demand, flop_count=flop_count, family=bands.UNMEASURED)


def _unit(dtype: str) -> Operation:
    if element_bytes(dtype) == 8.0:
        return Operation.FP64_FMA
    return Operation.FP32_FMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of kernel: its sizes, and what it asks of a chip."""

    ask: Callable[[Mapping[str, int], str, Chip], Asked]
    sizes: tuple[str, ...]
    defaults: tuple[tuple[str, int], ...] = ()
    dtype: str = "fp32"


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "fft": Kind(ask=_fft, sizes=("n", "batch", "dims"), defaults=(("batch", 1), ("dims", 1))),
        "stencil": Kind(
            ask=_stencil,
            sizes=("points", "reads", "writes", "flops", "steps"),
            defaults=(("reads", 1), ("writes", 1), ("flops", 8), ("steps", 1)),
        ),
        "spmv": Kind(ask=_spmv, sizes=("rows", "cols", "nnz"), dtype="fp64"),
        "nbody": Kind(ask=_nbody, sizes=("bodies",)),
        "pair_force": Kind(ask=_pair_force, sizes=("atoms", "neighbours")),
        "hpl": Kind(ask=_hpl, sizes=("n",), dtype="fp64"),
    }
)
"""By name."""
