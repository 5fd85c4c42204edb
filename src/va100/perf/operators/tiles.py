"""Tiled products: what each tile shape and split costs, and the quickest of them.

A CTA makes a tile of the result in steps along ``k``; CTAs run in waves over the SMs.  A wave
takes as long as its tensor work, its traffic from L2 or one CTA's latency, whichever is longest;
DRAM runs beside it.  The constants are few and hold for all shapes: none belongs to a shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

from va100.perf.kernel import Bound
from va100.perf.operators.chips import Chip, find_chip
from va100.perf.operators.estimates import Demand, together_s
from va100.perf.operators.formats import Format
from va100.spec.model import MmaKind, Operation
from va100.units import US


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
    def activation_bytes(self) -> float:
        """Of the first operand."""
        return self.m * self.k * self.batch * self.number.activation_bytes

    @property
    def weight_bytes(self) -> float:
        """Of the second operand, as stored: half and two bits an element when 2:4 sparse."""
        kept = 0.5 + 0.125 / self.number.weight_bytes if self.sparse else 1.0
        return self.n * self.k * self.batch * self.number.weight_bytes * kept

    @property
    def result_bytes(self) -> float:
        """Of the result."""
        return self.m * self.n * self.batch * self.number.result_bytes


class Tile(NamedTuple):
    """Shape of a CTA's part of the result, and how many CTAs share an SM."""

    rows: int
    columns: int
    resident_count: int


TILES: Final = tuple(
    Tile(*row)
    for row in (
        (256, 128, 1),
        (128, 256, 1),
        (128, 128, 2),
        (256, 64, 2),
        (64, 256, 2),
        (128, 64, 3),
        (64, 128, 3),
        (64, 64, 5),
        (32, 128, 5),
        (128, 32, 5),
        (32, 64, 6),
        (64, 32, 6),
        (32, 32, 8),
        (16, 64, 8),
        (64, 16, 8),
        (16, 128, 6),
        (16, 32, 8),
    )
)
SPLITS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
STEP: Final = 32
"""Elements of ``k`` that a pipeline stage holds."""
SHORTEST_PART: Final = 128
"""Least elements of ``k`` that a split leaves to a CTA."""

# Fitted together to a third of the shapes of one table (docs/operators.md), by absolute relative
# error; in the units of an A100 at 1410 MHz.
LAUNCH_S: Final = 3.52 * US
CTA_S: Final = 0.42 * US
"""From a CTA's start to its first product, and from its last to its end."""
STEP_S: Final = 0.145 * US
"""One step of a CTA that is alone."""
REACHED_RATIO: Final = 0.925
"""Of the tensor peak by an endless tile."""
EDGE: Final = 20.0
"""Elements by which a tile's harmonic size must exceed zero efficiency."""
L2_SM_BYTES_PER_S: Final = 24.05 * 1.41e9
"""What an SM draws from L2 when all do."""
L2_FEW_BYTES_PER_S: Final = 82.4 * 1.41e9
"""When few do."""
DRAM_RATIO: Final = 1.4026 / 2.039
WAIT_S: Final = 0.746 * US
"""From asking memory to having."""
FLIGHT_STEPS: Final = 3
"""Steps a CTA has under way."""
OVERLAP: Final = 3.1
REDUCE_S: Final = 2.19 * US
REDUCE_BYTES_PER_S: Final = 4.94e12
WAVE_S: Final = 0.686 * US
COPIES: Final = 6
"""Weights that are used before these come again, as layers of a model are."""
RESIDENT_BYTES: Final = 0.74e6
SLACK: Final = 0.936


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
    dram_bytes: float


def quickest(product: Product, chip: Chip) -> Tiling:
    """Time every tile and split, and take the quickest."""
    best: Tiling | None = None
    for tile in TILES:
        for split in SPLITS:
            if split > 1 and -(-product.k // split) < SHORTEST_PART:
                break
            found = timed(product, tile, split, chip)
            if best is None or found.total_s < best.total_s:
                best = found
    if best is None:
        raise AssertionError("no tile")
    return best


def timed(product: Product, tile: Tile, split: int, chip: Chip) -> Tiling:
    """Time one way of doing a product."""
    number = product.number
    depth = ceil(ceil(product.k / split) / STEP) * STEP
    ctas = ceil(product.m / tile.rows) * ceil(product.n / tile.columns) * product.batch * split
    fed_bytes = tile.rows * number.activation_bytes + tile.columns * number.weight_bytes
    peak = chip.flop_per_s(number, sparse=product.sparse) / chip.sm_count
    harmonic = 2.0 / (1.0 / tile.rows + 1.0 / tile.columns)
    reached = max(REACHED_RATIO * (1.0 - EDGE / harmonic), 0.05)
    math_s = 2.0 * tile.rows * tile.columns * depth / (peak * reached)
    busy = min(ctas / chip.sm_count, 1.0)
    l2_s = fed_bytes * depth / _l2_sm_bytes_per_s(chip, busy)
    alone_s = CTA_S + depth / STEP * STEP_S
    one_s = max(math_s, l2_s)
    slots = chip.sm_count * tile.resident_count
    waves, rest = divmod(ctas, slots)
    sm_s = waves * max(tile.resident_count * one_s + WAVE_S, alone_s)
    if rest:
        sm_s += max(ceil(rest / chip.sm_count) * one_s + WAVE_S, alone_s)
    dram_bytes = _dram_bytes(product, chip)
    flight = min(ctas, slots) * fed_bytes * min(FLIGHT_STEPS * STEP, depth)
    asked_s = (product.weight_bytes + product.activation_bytes) / flight * WAIT_S
    memory_s = max(dram_bytes / (chip.dram_bytes_per_s * DRAM_RATIO), asked_s)
    fixed_s = LAUNCH_S
    if split > 1:
        fixed_s += REDUCE_S
        fixed_s += product.m * product.n * product.batch * split * 8.0 / REDUCE_BYTES_PER_S
    return Tiling(
        total_s=SLACK * (fixed_s + together_s(sm_s, memory_s, OVERLAP)),
        sm_s=SLACK * sm_s,
        memory_s=SLACK * memory_s,
        fixed_s=SLACK * fixed_s,
        rows=tile.rows,
        columns=tile.columns,
        split=split,
        cta_count=ctas,
        wave_count=ctas / slots,
        bound=Bound.L2 if l2_s > math_s else _math_bound(number),
        l2_bytes=ctas * fed_bytes * depth + product.result_bytes,
        dram_bytes=dram_bytes,
    )


def demand_of(product: Product, tiling: Tiling, chip: Chip) -> Demand:
    """What the quickest way asks of the chip."""
    unit = product.number.unit
    if isinstance(unit, MmaKind) and unit not in chip.peak_flop_per_s:
        unit = Operation.FP64_FMA
    return Demand(
        operations={unit: product.flop_count},
        sm_s=tiling.sm_s,
        sm_bound=tiling.bound,
        memory_s=tiling.memory_s,
        fixed_s=tiling.fixed_s,
        dram_bytes=tiling.dram_bytes,
        l2_bytes=tiling.l2_bytes,
        exponent=OVERLAP,
    )


_A100: Final = find_chip("a100-sxm4-80gb")


def _l2_sm_bytes_per_s(chip: Chip, busy: float) -> float:
    scale = (chip.l2_bytes_per_s / chip.sm_count) / (_A100.l2_bytes_per_s / _A100.sm_count)
    return scale * (L2_SM_BYTES_PER_S * busy + L2_FEW_BYTES_PER_S * (1.0 - busy))


def _dram_bytes(product: Product, chip: Chip) -> float:
    """Bytes that L2 does not still hold."""
    room = RESIDENT_BYTES * chip.l2_bytes / _A100.l2_bytes
    moved = product.activation_bytes + product.result_bytes
    weights = product.weight_bytes
    return weights * _missed(weights * COPIES + moved, room) + moved * _missed(moved, room)


def _missed(footprint_bytes: float, room_bytes: float) -> float:
    return 1.0 / (1.0 + (room_bytes / footprint_bytes) ** 4)


def _math_bound(number: Format) -> Bound:
    return Bound.TENSOR if number.on_tensor_cores else Bound.FMA
