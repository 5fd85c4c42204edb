"""Tiled products: what each tile shape and split costs, and the one the library would take.

A CTA makes a tile of the result in steps along ``k``; CTAs run in waves over the SMs.  A wave takes
as long as its multiplications, its traffic from L2 or one CTA's latency, whichever is longest, and
then stores its tiles; DRAM runs beside it.  The constants are in
:mod:`~va100.perf.operators.tile_fits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from va100.perf.energy import SPARSE_FLOP_RATIO
from va100.perf.kernel import Bound
from va100.perf.operators.chips import Chip, find_chip
from va100.perf.operators.estimates import Demand, together_s
from va100.perf.operators.formats import Format
from va100.perf.operators.tile_fits import (
    INT8,
    ORDINARY,
    ORDINARY_BATCHED,
    PACKED4,
    PACKED8,
    TENSOR,
    TileFit,
)
from va100.spec.model import MmaKind, Operation
from va100.units import US

Floats = NDArray[np.float64]

VECTOR_BYTES: Final = 16
WORD_BYTES: Final = 4
INNER_WORD_RATIO: Final = 0.55
OUTER_WORD_RATIO: Final = 0.68
ODD_RATIO: Final = 0.285
"""Speed of tensor-core kernels whose loads are narrower than 16 bytes, since rows of operands are
not a multiple of that: of words where ``k`` is odd, which both operands suffer from, or ``n``; of
less than words.  Fitted to sizes around 51,186, 14,282 and 300 (ELEUTHER)."""
SPARSE_RATIO: Final = 0.56
"""Of twice the dense rate by 2:4 sparse products: kernels come in fewer tiles, and metadata are
loaded besides.  Fitted to three published products, of two versions of the library."""
SPARSE_ROWS: Final = 32
"""Rows that a sparse product's other operand is padded to a multiple of."""
SPARSE_COPY_S: Final = 4.5 * US
"""Each of the copies that pad the operand and cut the result.  Assumed: two launches' time."""
L2_BOUND_RATIO: Final = 1.25
"""By how much L2 must hold a tile up before it is named as what does."""
SHALLOW: Final = 128
"""Elements of ``k`` up to which the pipeline does not fill, and the least that a split leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product to be timed."""

    m: int
    n: int
    k: int
    batch: int
    number: Format
    sparse: bool = False

    @property
    def flop_count(self) -> float:
        """Operations, a multiply-add counted as two, as if dense."""
        return 2.0 * self.m * self.n * self.k * self.batch

    @property
    def weight_element_bytes(self) -> float:
        """Of the second operand: half of it and two bits for each element kept, when 2:4 sparse."""
        size = self.number.weight_bytes
        return size * 0.5 + 0.125 if self.sparse else size

    @property
    def activation_bytes(self) -> float:
        """Of the first operand."""
        return self.m * self.k * self.batch * self.number.activation_bytes

    @property
    def weight_bytes(self) -> float:
        """Of the second operand."""
        return self.n * self.k * self.batch * self.weight_element_bytes

    @property
    def result_bytes(self) -> float:
        """Of the result."""
        return self.m * self.n * self.batch * self.number.result_bytes


class Tiling(NamedTuple):
    """A way to do a product, and its times at the boost clock."""

    total_s: float
    sm_s: float
    memory_s: float
    fixed_s: float
    rows: int
    columns: int
    split: int
    cta_count: int
    wave_count: float
    bound: Bound
    l2_bytes: float


class Machine(NamedTuple):
    """A chip in the units of the constants: an A100's cycles and bytes."""

    sm_count: int
    clock_hz: float
    fma_per_cycle: float
    l2_ratio: float
    """L2 rate of an SM, of an A100's."""
    dram_ratio: float
    """Of the A100 80 GB's."""
    cache_ratio: float
    """L2 size, of an A100's."""


_A100: Final = find_chip("a100-sxm4-80gb")


def fit_of(product: Product) -> TileFit:
    """Kind of kernel that does a product."""
    number = product.number
    if number.weight_only:
        return PACKED8 if number.weight_bytes == 1.0 else PACKED4
    if number.unit in (MmaKind.INT8, MmaKind.INT4, MmaKind.FP8):
        return INT8
    if number.on_tensor_cores:
        return TENSOR
    return ORDINARY if product.batch == 1 else ORDINARY_BATCHED


@lru_cache(maxsize=1024)
def machine_of(chip: Chip, number: Format, sparse: bool) -> Machine:  # noqa: FBT001 - cached
    """Put a chip into the units of the constants.

    A GPU of which headlines alone are known is taken to feed its tensor cores from L2 as well as an
    A100 does; what it draws is thus scaled by what it multiplies.
    """
    peak = chip.flop_per_s(number, sparse=sparse)
    per_sm = peak / chip.sm_count / chip.clock_hz / 2.0
    if sparse:
        per_sm *= SPARSE_RATIO
    known = _A100.peak_flop_per_s.get(number.unit, 0.0) / _A100.sm_count / _A100.clock_hz / 2.0
    l2_ratio = (chip.l2_bytes_per_s / chip.sm_count) / (_A100.l2_bytes_per_s / _A100.sm_count)
    if known and chip.model_name != _A100.model_name:
        dense = chip.flop_per_s(number) / chip.sm_count / chip.clock_hz / 2.0
        l2_ratio = max(l2_ratio, dense / known)
    return Machine(
        sm_count=chip.sm_count,
        clock_hz=chip.clock_hz,
        fma_per_cycle=per_sm,
        l2_ratio=l2_ratio,
        dram_ratio=chip.dram_reached_bytes_per_s / _A100.dram_reached_bytes_per_s,
        cache_ratio=chip.l2_bytes / _A100.l2_bytes,
    )


def quickest(product: Product, chip: Chip, fit: TileFit | None = None) -> Tiling:
    """Time every tile and split, and take the one the library would.

    Parameters
    ----------
    fit : TileFit, optional
        Kind of kernel; the one for plain products without it.
    """
    fit = fit or fit_of(product)
    machine = machine_of(chip, product.number, product.sparse)
    work = Work(product, machine, fit, memory_bytes(product, machine, fit), aligned_ratio(product))
    ways = _ways(fit)
    timed = _timed(work, ways)
    best = int(np.argmin(np.where(_allowed(product, ways, fit), timed.choice, np.inf)))
    tiling = _picked(work, timed, ways, best)
    if product.m * product.batch <= fit.vector_rows and not product.sparse:
        vector = _vector(work)
        return vector if fit.vector_only else min(tiling, vector)
    return tiling


def aligned_ratio(product: Product) -> float:
    """Speed that rows of an odd size leave to the tensor cores."""
    number = product.number
    if not number.on_tensor_cores or number.unit is MmaKind.FP64:
        return 1.0
    inner = _power_of_two(product.k * number.activation_bytes)
    outer = _power_of_two(product.n * number.result_bytes)
    if min(inner, outer) >= VECTOR_BYTES:
        return 1.0
    if min(inner, outer) < WORD_BYTES:
        return ODD_RATIO
    return INNER_WORD_RATIO if inner < VECTOR_BYTES else OUTER_WORD_RATIO


def memory_bytes(product: Product, machine: Machine, fit: TileFit) -> float:
    """Bytes that L2 does not still hold when the product begins."""
    room = fit.resident_bytes * machine.cache_ratio
    moved = product.activation_bytes + product.result_bytes
    weights = product.weight_bytes
    again = weights * fit.copies_count + moved
    return weights * _missed(again, room) + moved * _missed(moved, room)


def demand_of(product: Product, tiling: Tiling, chip: Chip) -> Demand:
    """What the quickest way asks of the chip."""
    unit = product.number.unit
    if unit is MmaKind.FP64 and unit not in chip.peak_flop_per_s:
        unit = Operation.FP64_FMA
    fit = fit_of(product)
    machine = machine_of(chip, product.number, product.sparse)
    return Demand(
        operations={unit: product.flop_count * (SPARSE_FLOP_RATIO if product.sparse else 1.0)},
        sm_s=tiling.sm_s,
        sm_bound=tiling.bound,
        memory_s=tiling.memory_s,
        fixed_s=tiling.fixed_s,
        dram_bytes=memory_bytes(product, machine, fit),
        l2_bytes=tiling.l2_bytes,
        exponent=fit.exponent,
    )


class Ways(NamedTuple):
    """Tiles and splits of one kind of kernel, an entry each."""

    rows: Floats
    columns: Floats
    resident: Floats
    split: Floats
    area: Floats
    reached: Floats
    """Of the peak."""
    preference: Floats


class Work(NamedTuple):
    """A product on a chip, to be timed in many ways."""

    product: Product
    machine: Machine
    fit: TileFit
    dram_bytes: float
    aligned: float


class Timed(NamedTuple):
    """Times of each way."""

    choice: Floats
    sm_s: Floats
    memory_s: Floats
    reduce_s: Floats
    ctas: Floats
    math: Floats
    feed: Floats
    """Cycles of one tile."""
    waiting: Floats
    """Cycles of one CTA that is alone."""
    depth: Floats
    fed: Floats


@lru_cache(maxsize=16)
def _ways(fit: TileFit) -> Ways:
    table = np.array([(*tile, split) for tile in fit.tiles for split in fit.splits], dtype=float)
    rows, columns, resident, split = table.T
    harmonic = 2.0 * rows * columns / (rows + columns)
    return Ways(
        rows=rows,
        columns=columns,
        resident=resident,
        split=split,
        area=rows * columns,
        reached=fit.peak_ratio * harmonic / (harmonic + fit.edge_count),
        preference=(rows * columns) ** -fit.large_bias,
    )


def _depth(k: int, ways: Ways, step: float) -> Floats:
    """Elements of ``k`` that a CTA goes over, in whole steps."""
    return np.ceil(np.ceil(k / ways.split) / step) * step


def _allowed(product: Product, ways: Ways, fit: TileFit) -> NDArray[np.bool_]:
    """Whether a split leaves every CTA enough to do."""
    depth = _depth(product.k, ways, fit.step_bytes / product.number.activation_bytes)
    thick = (depth >= SHALLOW) & (depth * (ways.split - 1) < product.k)
    return np.asarray((ways.split == 1) | thick)


def _timed(work: Work, ways: Ways) -> Timed:
    """Time each way of doing a product."""
    product, machine, fit = work.product, work.machine, work.fit
    number = product.number
    step = fit.step_bytes / number.activation_bytes
    depth = _depth(product.k, ways, step)
    ctas = np.ceil(product.m / ways.rows) * np.ceil(product.n / ways.columns)
    ctas *= product.batch * ways.split
    fed = ways.rows * number.activation_bytes + ways.columns * product.weight_element_bytes
    shallow = fit.shallow_ratio if product.k <= SHALLOW else 1.0
    math = ways.area * depth / (machine.fma_per_cycle * shallow * work.aligned * ways.reached)
    math += ways.columns * depth * fit.unpack_cycles
    busy = np.minimum(ctas / machine.sm_count, 1.0)
    drawn = fit.l2_busy_bytes_per_cycle * busy + fit.l2_alone_bytes_per_cycle * (1.0 - busy)
    feed = fed * depth / (drawn * machine.l2_ratio * work.aligned)
    one = np.maximum(math, feed)
    alone = depth * (fit.step_cycles / step)
    ends = fit.start_cycles + fit.end_cycles
    store = ways.area * np.where(ways.split > 1, 4.0, number.result_bytes)
    store /= fit.store_bytes_per_cycle
    slots = machine.sm_count * ways.resident
    waves = np.floor(ctas / slots)
    rest = ctas - waves * slots
    hidden = (fit.hidden_ratio * (ends + store)) * ((ways.resident > 1) & (waves > 1))
    cycles = waves * (
        np.maximum(ways.resident * one, alone) + ends + ways.resident * store - hidden
    )
    share = np.ceil(rest / machine.sm_count)
    cycles += np.where(rest > 0, np.maximum(share * one, alone) + ends + share * store, 0.0)
    sm_s = cycles / machine.clock_hz
    flight = np.minimum(ctas, slots) * fed * np.minimum(fit.flight_count, depth)
    asked = product.weight_bytes + product.activation_bytes
    memory_s = work.dram_bytes / (fit.dram_bytes_per_s * machine.dram_ratio)
    memory_s = memory_s + asked / flight * (fit.wait_cycles / machine.clock_hz)
    moved = product.m * product.n * product.batch * (4.0 * ways.split + number.result_bytes)
    reduce_s = fit.reduce_s + moved / (fit.reduce_bytes_per_s * machine.dram_ratio)
    reduce_s = np.where(ways.split > 1, reduce_s, 0.0)
    together = (sm_s**fit.exponent + memory_s**fit.exponent) ** (1.0 / fit.exponent)
    return Timed(
        choice=(fit.launch_s + fit.reduce_bias * reduce_s + together) * ways.preference,
        sm_s=sm_s,
        memory_s=memory_s,
        reduce_s=reduce_s,
        ctas=ctas,
        math=math,
        feed=feed,
        waiting=alone + ends,
        depth=depth,
        fed=fed,
    )


def _picked(work: Work, timed: Timed, ways: Ways, best: int) -> Tiling:
    """One way out of many, with its times."""
    sm_s, memory_s = float(timed.sm_s[best]), float(timed.memory_s[best])
    fixed_s = work.fit.launch_s + float(timed.reduce_s[best])
    ctas, resident = int(timed.ctas[best]), float(ways.resident[best])
    moved = ctas * float(timed.fed[best] * timed.depth[best])
    return Tiling(
        total_s=fixed_s + together_s(sm_s, memory_s, work.fit.exponent),
        sm_s=sm_s,
        memory_s=memory_s,
        fixed_s=fixed_s,
        rows=int(ways.rows[best]),
        columns=int(ways.columns[best]),
        split=int(ways.split[best]),
        cta_count=ctas,
        wave_count=ctas / (work.machine.sm_count * resident),
        bound=_bound(work, timed, best, resident),
        l2_bytes=moved + work.product.result_bytes,
    )


def _bound(work: Work, timed: Timed, best: int, resident: float) -> Bound:
    """What one SM waits for."""
    math, feed = float(timed.math[best]), float(timed.feed[best])
    shared = min(resident, -(-int(timed.ctas[best]) // work.machine.sm_count))
    if float(timed.waiting[best]) > shared * max(math, feed):
        return Bound.LATENCY
    if feed > L2_BOUND_RATIO * math:
        return Bound.L2
    return Bound.TENSOR if work.product.number.on_tensor_cores else Bound.FMA


def _vector(work: Work) -> Tiling:
    """Time the kernel for a product of few rows, which has a warp for each column."""
    product, machine, fit = work.product, work.machine, work.fit
    memory_s = work.dram_bytes / (fit.vector_bytes_per_s * machine.dram_ratio)
    fixed_s = fit.launch_s + fit.vector_s + product.k * fit.vector_element_s
    return Tiling(
        total_s=fixed_s + memory_s,
        sm_s=0.0,
        memory_s=memory_s,
        fixed_s=fixed_s,
        rows=product.m,
        columns=1,
        split=1,
        cta_count=product.n,
        wave_count=1.0,
        bound=Bound.LATENCY,
        l2_bytes=product.weight_bytes,
    )


def _power_of_two(size: float) -> float:
    """Largest power of two that divides a size; half a byte counts as none."""
    whole = int(size)
    return float(whole & -whole) if whole == size else 0.5


def _missed(footprint_bytes: float, room_bytes: float) -> float:
    return 1.0 / (1.0 + (room_bytes / footprint_bytes) ** 4)
