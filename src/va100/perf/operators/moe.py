"""Mixtures of experts: routing, and the experts' products grouped in one launch.

Each expert's tokens are rows of a product of their own, padded to a tile; experts that got a token
are read from memory, the others are not.  How even the routing is decides both; rows that are
gathered, activated and summed besides are streams over memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp
from types import MappingProxyType
from typing import Final

from va100.perf.kernel import Bound
from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import Demand, OperatorEstimate, filled, together_s
from va100.perf.operators.formats import Format, find_format
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.streams import missed_ratio
from va100.units import US


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeEstimate(OperatorEstimate):
    """A layer of experts' predicted time."""

    active_experts: float
    """Of this GPU's, those that got a token."""
    routed_rows: float
    """Tokens times choices that this GPU reckons."""
    weight_bytes: float
    """Read of the active experts, in whole steps of their width."""
    padding_ratio: float
    """Rows reckoned over rows routed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Sizes of one GPU's part of a layer."""

    tokens: float
    """That this GPU is handed."""
    hidden: int
    width: int
    """Of one expert's part on this GPU."""
    topk: int
    experts: int
    """On this GPU."""
    all_experts: int
    loads: tuple[float, ...]
    """Rows of each of them, those without any left out."""
    streamed_rows: float
    """Rows that are gathered, activated and summed, some of them other GPUs' perhaps."""
    matrices: int
    number: Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What was fitted, on an A100 at 1410 MHz (docs/operators.md)."""

    fixed_s: float
    """Routing, sorting and the launches."""
    math_ratio: float
    """Of the tensor peak by an endless tile."""
    edge_count: float
    """Elements of a tile's harmonic size at which half of that is reached."""
    few_ratio: float
    """Of that law by tiles of sixteen rows, which wait for weights anyway."""
    unaligned_ratio: float
    """Time of a product whose rows are not a multiple of 16 elements, of one whose are."""
    step_s: float
    """A CTA's step of 64 elements when it is alone."""
    memory_ratio: float
    """Of the reading rate by weights."""
    stream_ratio: float
    """Of the reading rate by rows that are streamed."""
    exponent: float
    row_s: float
    """Sorting, per row."""
    expert_s: float
    """Sorting, per expert of the layer."""
    tiles: tuple[tuple[int, int], ...]
    """Rows and columns: the quickest is taken, or, where ``few_first``, the first while there are
    no more tokens than experts and the second otherwise."""
    few_first: bool
    resident_count: int
    all_choices: bool
    """Whether a token that chose an expert of this GPU is reckoned with all of its choices."""
    streams_all: bool
    """Whether rows of other GPUs' experts are streamed, too."""


LIBRARIES: Final[Mapping[str, Constants]] = MappingProxyType(
    {
        "vllm": Constants(
            fixed_s=23.3 * US,
            row_s=0.00046 * US,
            expert_s=0.0608 * US,
            step_s=0.165 * US,
            math_ratio=0.995,
            edge_count=49.9,
            few_ratio=3.14,
            unaligned_ratio=4.4,
            memory_ratio=0.853,
            stream_ratio=0.976,
            exponent=1.07,
            tiles=((16, 32), (64, 64)),
            few_first=True,
            resident_count=4,
            all_choices=False,
            streams_all=True,
        ),
        "sglang": Constants(
            fixed_s=5.26 * US,
            row_s=0.000109 * US,
            expert_s=0.0487 * US,
            step_s=0.117 * US,
            math_ratio=0.911,
            edge_count=41.5,
            few_ratio=1.05,
            unaligned_ratio=4.4,
            memory_ratio=0.964,
            stream_ratio=0.836,
            exponent=1.02,
            tiles=((16, 32), (64, 64)),
            few_first=True,
            resident_count=4,
            all_choices=True,
            streams_all=False,
        ),
        "marlin": Constants(
            fixed_s=25.1 * US,
            row_s=0.000445 * US,
            expert_s=0.0647 * US,
            step_s=0.123 * US,
            math_ratio=0.998,
            edge_count=64.0,
            few_ratio=1.24,
            unaligned_ratio=1.0,
            memory_ratio=0.997,
            stream_ratio=0.758,
            exponent=1.06,
            tiles=((16, 128), (32, 128), (64, 128)),
            few_first=False,
            resident_count=1,
            all_choices=True,
            streams_all=False,
        ),
        "trtllm": Constants(
            fixed_s=22.9 * US,
            row_s=0.000211 * US,
            expert_s=0.276 * US,
            step_s=0.038 * US,
            math_ratio=0.802,
            edge_count=28.0,
            few_ratio=0.702,
            unaligned_ratio=1.0,
            memory_ratio=0.682,
            stream_ratio=0.406,
            exponent=1.43,
            tiles=((16, 128), (32, 128), (64, 128), (128, 128)),
            few_first=False,
            resident_count=1,
            all_choices=False,
            streams_all=False,
        ),
    }
)
"""Grouped kernels as serving stacks ship them, each fitted to a third of its layers (AICONFIG):
Triton with its default tiles in the first two, packed four-bit weights in the third.  What the two
that were measured by SGLang reckon on other GPUs' behalf is theirs (``all_choices``)."""
BALANCED: Final = 0.0
"""Skew at which every expert gets as much as any other."""
STEP: Final = 64
FEW_ROWS: Final = 16
ALIGNED: Final = 16
SMALL_LOAD: Final = 4.0
MASK: Final = (1 << 64) - 1


@lru_cache(maxsize=16384)
def estimate(
    tokens: int,
    hidden: int,
    inter: int,
    topk: int,
    experts: int,
    *,
    tp: int = 1,
    ep: int = 1,
    skew: float = BALANCED,
    gated: bool = True,
    dtype: str = "bf16",
    library: str | None = None,
    chip: str = DEFAULT,
) -> MoeEstimate:
    """Predict the busiest GPU's time for the experts of one layer.

    Parameters
    ----------
    tokens : int
        Tokens routed, over all GPUs that share the experts.
    inter : int
        Width of one expert, before it is split ``tp`` ways.
    ep : int
        GPUs that the experts are spread over.
    skew : float
        Exponent of the power law that experts' loads follow; 0 is even, traces lie near 1.
    gated : bool
        An expert has three matrices rather than two.
    library : str, optional
        A name of :data:`LIBRARIES`; without it the first, or the one for packed weights.

    Raises
    ------
    ValueError
        Sizes that don't fit together, an unknown format, library or chip, a format the chip lacks.
    """
    require_positive(
        tokens=tokens, hidden=hidden, inter=inter, topk=topk, experts=experts, tp=tp, ep=ep
    )
    if topk > experts:
        raise ValueError(f"topk {topk} is more than the {experts} experts")
    if experts % ep or inter % tp:
        raise ValueError(f"{experts} experts over ep={ep}, width {inter} over tp={tp}: not whole")
    number = find_format(dtype)
    kernels = library or ("marlin" if number.weight_only else "vllm")
    if kernels not in LIBRARIES:
        raise ValueError(f"library {library!r} is not one of {', '.join(LIBRARIES)}")
    fitted = LIBRARIES[kernels]
    loads = busiest(tokens, topk, experts, ep, skew)
    rows = sum(loads)
    arrived = float(tokens)
    if fitted.all_choices and ep > 1:
        arrived = min(arrived, ceil(rows))
        inflated = arrived * topk / rows
        loads = tuple(load * inflated for load in loads)
        rows *= inflated
    layer = Layer(
        tokens=arrived,
        hidden=hidden,
        width=inter // tp,
        topk=topk,
        experts=experts // ep,
        all_experts=experts,
        loads=loads,
        streamed_rows=float(tokens) * topk if fitted.streams_all else rows,
        matrices=3 if gated else 2,
        number=number,
    )
    return _estimate(layer, find_chip(chip), kernels)


def busiest(tokens: int, topk: int, experts: int, ep: int, skew: float) -> tuple[float, ...]:
    """Rows of each expert of the GPU that has most of them, those without any left out.

    Under a power law the loads are its quantiles, dealt to the GPUs in an order without pattern.
    """
    routed = float(tokens) * topk
    local = experts // ep
    if skew == BALANCED:
        active = min(float(local), routed / ep)
        count = max(ceil(active), 1)
        return (routed / ep / count,) * count
    most = 0.8 * tokens if routed > experts else 2.0
    least = 1.0 if routed > experts else 0.01
    shares = [(rank + 0.5) / experts for rank in range(experts)]
    weights = [_quantile(share, skew, least, max(most, 1.1)) for share in shares]
    loads = _dealt_out(weights, routed, float(tokens))
    dealt = [load for _, load in sorted((_mixed(rank), load) for rank, load in enumerate(loads))]
    groups = [dealt[start : start + local] for start in range(0, experts, local)]
    return _arrived(max(groups, key=sum), topk if ep == 1 else 1)


def _dealt_out(weights: list[float], routed: float, most: float) -> list[float]:
    """Rows by weight, none above ``most``: what an expert cannot take, the others share."""
    if routed >= most * len(weights):
        return [most] * len(weights)
    full = 0
    falling = sorted(weights, reverse=True)
    rest = sum(falling)
    while falling[full] * (routed - full * most) > most * rest:
        rest -= falling[full]
        full += 1
    each = (routed - full * most) / rest
    return [min(weight * each, most) for weight in weights]


def _arrived(loads: list[float], choices: int) -> tuple[float, ...]:
    """Loads of experts that get a token at all; small ones are taken as Poisson's.

    Where no choice went to another GPU there are at least as many as one token has chosen.
    """
    heavy = [load for load in loads if load >= SMALL_LOAD]
    light = [load for load in loads if load < SMALL_LOAD]
    reached = round(sum(1.0 - exp(-load) for load in light))
    count = min(max(reached, choices - len(heavy)), len(light))
    if not count:
        return tuple(heavy)
    return (*heavy, *((max(sum(light) / count, 1e-3),) * count))


def _quantile(share: float, skew: float, least: float, most: float) -> float:
    """Load at a share of the experts, of a power law cut off at both ends."""
    if abs(skew - 1.0) < 1e-9:
        return float(least * (most / least) ** share)
    power = 1.0 - skew
    return float((share * (most**power - least**power) + least**power) ** (1.0 / power))


def _mixed(rank: int) -> int:
    """A number without pattern, for an order that is the same on every run."""
    value = (rank + 1) * 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def _estimate(layer: Layer, chip: Chip, library: str) -> MoeEstimate:
    rows = sum(layer.loads)
    matrix = layer.hidden * layer.width
    flop_count = 2.0 * rows * layer.matrices * matrix
    demand, tile = demand_of(layer, chip, LIBRARIES[library])
    return MoeEstimate(
        **filled(demand, chip, bands.MOE[library], flop_count),  # type: ignore[arg-type]
        active_experts=float(len(layer.loads)),
        routed_rows=rows,
        weight_bytes=_weight_bytes(layer),
        padding_ratio=_block_count(layer.loads, tile) * tile / rows,
    )


def demand_of(layer: Layer, chip: Chip, fitted: Constants) -> tuple[Demand, int]:
    """What the layer asks of the chip, and the rows of its tiles."""
    first = layer.width * (layer.matrices - 1)
    tiles = fitted.tiles
    if fitted.few_first:
        tiles = tiles[:1] if layer.tokens <= layer.experts else tiles[1:]
    best: tuple[float, float, float, int] | None = None
    memory_s = _weight_bytes(layer) / (chip.dram_reached_bytes_per_s * fitted.memory_ratio)
    for tile, columns in tiles:
        blocks = _block_count(layer.loads, tile)
        sm_s = padded_flop = 0.0
        for wide, deep in ((first, layer.hidden), (layer.hidden, layer.width)):
            ctas = blocks * ceil(wide / columns)
            slower = fitted.unaligned_ratio if deep % ALIGNED else 1.0
            sm_s += _grouped_s(ctas, (tile, columns, deep), layer, chip, fitted) * slower
            padded_flop += ctas * 2.0 * tile * columns * deep
        total_s = together_s(sm_s, memory_s, fitted.exponent)
        if best is None or total_s < best[0]:
            best = (total_s, sm_s, padded_flop, tile)
    assert best is not None
    _, sm_s, padded_flop, tile = best
    moved = _streamed_bytes(layer, first)
    missed = missed_ratio(moved, chip)
    rate = chip.dram_reached_bytes_per_s * fitted.stream_ratio
    stream_s = moved * (missed / rate + (1.0 - missed) / chip.l2_bytes_per_s)
    sorted_s = fitted.fixed_s + layer.all_experts * fitted.expert_s
    sorted_s += layer.streamed_rows * fitted.row_s
    demand = Demand(
        operations={layer.number.unit: padded_flop},
        sm_s=sm_s,
        sm_bound=Bound.TENSOR,
        memory_s=memory_s,
        fixed_s=sorted_s + stream_s,
        dram_bytes=_weight_bytes(layer) + moved * missed,
        l2_bytes=padded_flop / 64.0 + moved,
        exponent=fitted.exponent,
    )
    return demand, tile


def _grouped_s(
    ctas: float, block: tuple[int, int, int], layer: Layer, chip: Chip, fitted: Constants
) -> float:
    """Seconds of the SMs for one grouped product."""
    tile, columns, depth = block
    harmonic = 2.0 * tile * columns / (tile + columns)
    reached = fitted.math_ratio * harmonic / (harmonic + fitted.edge_count)
    if tile <= FEW_ROWS:
        reached *= fitted.few_ratio
    peak = chip.flop_per_s(layer.number) / chip.sm_count
    math_s = 2.0 * tile * columns * depth / (peak * reached)
    alone_s = ceil(depth / STEP) * fitted.step_s
    slots = chip.sm_count * fitted.resident_count
    waves = max(ctas / slots, 1.0)
    return max(waves * fitted.resident_count * math_s, waves * alone_s)


def _block_count(loads: tuple[float, ...], tile: int) -> float:
    return float(sum(ceil(load / tile) for load in loads))


def _weight_bytes(layer: Layer) -> float:
    padded = ceil(layer.width / STEP) * STEP
    matrix = layer.hidden * padded * layer.number.weight_bytes
    return len(layer.loads) * layer.matrices * matrix


def _streamed_bytes(layer: Layer, first: int) -> float:
    """Rows written by the first product, activated, read by the second, written by it, summed."""
    row = 2.0 * first + 2.0 * layer.width + 2.0 * layer.hidden
    each = layer.number.activation_bytes
    return (layer.streamed_rows * row + layer.tokens * layer.hidden) * each
