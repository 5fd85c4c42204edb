"""Attention: prefill as fused tiles, decode as a stream of keys and values, latent attention too.

A fused kernel gives each CTA a tile of queries of one head and walks over the keys; what it waits
for is the tensor cores, the exponentials of the softmax, or, with few queries, the keys and values
coming from memory.  Writing the new keys and values to the cache is in the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import Final

from va100.perf.kernel import Bound
from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import Demand, OperatorEstimate, filled
from va100.perf.operators.formats import Format, element_bytes, find_format
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.streams import missed_ratio
from va100.spec.model import Operation
from va100.units import US


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionEstimate(OperatorEstimate):
    """Attention's predicted time."""

    phase: str
    """``prefill`` or ``decode``."""
    kv_bytes: float
    """Keys and values read."""
    cta_count: int
    split_kv: int
    """CTAs that share one tile's keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of one attention."""

    batch: int
    q_len: int
    kv_len: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    causal: bool
    number: Format
    kv_element_bytes: float
    shared_values: bool
    """Values are part of the keys, read once, as in latent attention."""
    backward: bool = False

    @property
    def pair_count(self) -> float:
        """Query-key pairs of one head that are not masked."""
        past = self.kv_len - self.q_len
        if not self.causal or past < 0:
            return float(self.q_len) * self.kv_len
        return self.q_len * (past + (self.q_len + 1) / 2.0)

    @property
    def flop_count(self) -> float:
        """Operations of both products."""
        width = self.head_dim + self.value_dim
        flop_count = 2.0 * self.batch * self.heads * self.pair_count * width
        return flop_count * BACKWARD_PRODUCTS if self.backward else flop_count

    @property
    def kv_bytes(self) -> float:
        """Keys and values of all sequences."""
        width = self.head_dim if self.shared_values else self.head_dim + self.value_dim
        return self.batch * self.kv_len * self.kv_heads * width * self.kv_element_bytes

    @property
    def query_bytes(self) -> float:
        """Queries and results."""
        width = self.head_dim + self.value_dim
        return self.batch * self.q_len * self.heads * width * self.number.activation_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What was fitted, on an A100 at 1410 MHz (docs/operators.md)."""

    launch_s: float
    """Both kernels: the one that stores new keys and values, and attention itself."""
    cta_s: float
    """A prefill CTA's start and end."""
    math_ratio: float
    """Of the tensor peak by the two products alone."""
    exp_per_cycle: float
    """Exponentials of an SM, with the sums and scaling around them."""
    tail_ratio: float
    """Of the longest CTA by which the last ones stand out."""
    memory_ratio: float
    """Of the reading rate by queries, keys and results."""
    cache_ratio: float
    """Of the reading rate by the kernel that stores new keys and values."""
    exponent: float
    decode_launch_s: float
    decode_exponent: float
    decode_cta_s: float
    decode_step_s: float
    """A decode CTA's step over a tile of keys."""
    decode_resident: float
    """Decode CTAs that share an SM."""
    decode_ratio: float
    """Of the reading rate by a stream of paged keys."""
    combine_s: float
    """Adding up parts where keys are split."""
    packs_queries: bool
    """Whether a prefill tile holds queries of all heads that share keys."""
    splits_plain: bool
    """Whether keys are split where queries don't share them, too."""
    regroup_s: float
    """Bringing queries that share keys together, and results apart, where neither a lone sequence
    nor a lone head of keys has them so already."""
    regroup_ratio: float
    """Of the reading rate by those queries and results."""


LIBRARIES: Final[Mapping[str, Constants]] = MappingProxyType(
    {
        "vllm": Constants(
            launch_s=8.07 * US,
            cta_s=1.2 * US,
            math_ratio=0.764,
            exp_per_cycle=10.5,
            tail_ratio=0.621,
            memory_ratio=0.764,
            cache_ratio=1.2,
            exponent=1.2,
            decode_launch_s=9.28 * US,
            decode_exponent=3.85,
            decode_cta_s=2.08 * US,
            decode_step_s=1.46 * US,
            decode_resident=1.0,
            decode_ratio=0.881,
            combine_s=5.37 * US,
            regroup_s=5.76 * US,
            regroup_ratio=0.381,
            packs_queries=False,
            splits_plain=False,
        ),
        "sglang": Constants(
            launch_s=12.4 * US,
            cta_s=0.361 * US,
            math_ratio=0.999,
            exp_per_cycle=8.58,
            tail_ratio=0.877,
            memory_ratio=0.739,
            cache_ratio=0.982,
            exponent=1.76,
            decode_launch_s=10.2 * US,
            decode_exponent=5.33,
            decode_cta_s=0.771 * US,
            decode_step_s=3.29 * US,
            decode_resident=1.0,
            decode_ratio=0.979,
            combine_s=5.93 * US,
            regroup_s=1.03 * US,
            regroup_ratio=1.3,
            packs_queries=True,
            splits_plain=True,
        ),
        "trtllm": Constants(
            launch_s=12.0 * US,
            cta_s=0.568 * US,
            math_ratio=0.663,
            exp_per_cycle=7.54,
            tail_ratio=0.693,
            memory_ratio=0.399,
            cache_ratio=2.99,
            exponent=1.22,
            decode_launch_s=7.6 * US,
            decode_exponent=1.95,
            decode_cta_s=2.38 * US,
            decode_step_s=1.29 * US,
            decode_resident=2.2,
            decode_ratio=0.978,
            combine_s=4.08 * US,
            regroup_s=9.97 * US,
            regroup_ratio=0.308,
            packs_queries=False,
            splits_plain=True,
        ),
    }
)
"""Fused attention with a paged cache as serving stacks ship it, each fitted to a third of its
shapes (AICONFIG).  The first, FlashAttention 2 as it is, stands for all where none is named."""
BACKWARD_PRODUCTS: Final = 2.5
"""Products of the backward pass over those of the forward: five instead of two.  The softmax is
reckoned anew, once."""
BACKWARD_STREAMS: Final = 2.0
"""Bytes likewise: results and their gradients are read, gradients of all three operands written."""
FEW_QUERIES: Final = 16
"""New tokens of a sequence below which its keys are streamed, as in decode."""
QUERY_TILE: Final = 128
DECODE_TILE: Final = 64
"""Query heads times new tokens that go over the keys together."""
KEY_TILE: Final = 64
SPLIT_TILE: Final = 128
"""Keys that a split is a multiple of."""
DECODE_WIDTH: Final = 256.0
"""Elements of a key and its value where decode was measured; a step is taken to grow with them."""
SPLIT_GAIN: Final = 0.85
"""Splits are few: the first whose SMs are this busy, relative to the best."""
FULL_RATIO: Final = 0.8
"""Of the SMs with a CTA beyond which keys are not split."""
MAX_SPLIT: Final = 128


@lru_cache(maxsize=65536)
def estimate(
    batch: int,
    q_len: int,
    kv_len: int,
    heads: int,
    kv_heads: int | None = None,
    head_dim: int = 128,
    *,
    causal: bool = True,
    dtype: str = "bf16",
    kv_dtype: str | None = None,
    value_dim: int | None = None,
    backward: bool = False,
    library: str = "vllm",
    chip: str = DEFAULT,
) -> AttentionEstimate:
    """Predict the time of attention over ``batch`` sequences.

    Parameters
    ----------
    q_len : int
        New tokens of each sequence; 1 is decode.
    kv_len : int
        Keys of each sequence, the new ones among them.
    kv_heads : int, optional
        Fewer than ``heads`` when queries share keys (GQA), 1 in MQA.
    value_dim : int, optional
        Width of values where it isn't ``head_dim``.  Latent attention (MLA) while decoding is
        ``kv_heads=1, head_dim=576, value_dim=512``: values are then part of the keys.
    backward : bool
        The backward pass alone; a training step takes both.
    library : str
        A name of :data:`LIBRARIES`.

    Raises
    ------
    ValueError
        Sizes that don't fit together, an unknown format or chip, a format the chip lacks.
    """
    shared = kv_heads or heads
    width = value_dim or head_dim
    require_positive(
        batch=batch, q_len=q_len, kv_len=kv_len, heads=heads, kv_heads=shared, head_dim=head_dim
    )
    if heads % shared:
        raise ValueError(f"heads must be a multiple of kv_heads, not {heads} of {shared}")
    if causal and q_len > kv_len:
        raise ValueError(f"q_len {q_len} is more than kv_len {kv_len}, which counts new tokens too")
    if library not in LIBRARIES:
        raise ValueError(f"library {library!r} is not one of {', '.join(LIBRARIES)}")
    number, target = find_format(dtype), find_chip(chip)
    target.flop_per_s(number)  # refuses what the chip lacks, also where memory alone decides
    shape = Shape(
        batch=batch,
        q_len=q_len,
        kv_len=kv_len,
        heads=heads,
        kv_heads=shared,
        head_dim=head_dim,
        value_dim=width,
        causal=causal,
        number=number,
        kv_element_bytes=element_bytes(kv_dtype or dtype),
        shared_values=shared == 1 and width < head_dim,
        backward=backward,
    )
    return _estimate(shape, target, library)


def _estimate(shape: Shape, chip: Chip, library: str) -> AttentionEstimate:
    fitted = LIBRARIES[library]
    decode = shape.q_len < FEW_QUERIES and not shape.backward
    demand, ctas, split = (_decode if decode else _prefill)(shape, chip, fitted)
    family = (bands.DECODE if decode else bands.PREFILL)[library]
    return AttentionEstimate(
        **filled(demand, chip, family, shape.flop_count),  # type: ignore[arg-type]
        phase="decode" if decode else "prefill",
        kv_bytes=shape.kv_bytes,
        cta_count=ctas,
        split_kv=split,
    )


def _prefill(shape: Shape, chip: Chip, fitted: Constants) -> tuple[Demand, int, int]:
    ctas = _tile_count(shape, fitted)
    past = shape.kv_len - shape.q_len
    longest = float(ceil(shape.kv_len / KEY_TILE))
    mean = longest
    if shape.causal:
        first = ceil((past + min(QUERY_TILE, shape.q_len)) / KEY_TILE)
        mean = (first + longest) / 2.0
    step_s = _step_s(shape, chip, fitted)
    longest_s = fitted.cta_s + longest * step_s
    even_s = (fitted.cta_s + mean * step_s) * ctas / chip.sm_count
    stored = 2.0 * shape.kv_bytes * min(shape.q_len / shape.kv_len, 1.0)
    moved = shape.kv_bytes + shape.query_bytes
    if shape.backward:
        stored, moved = 0.0, moved * BACKWARD_STREAMS
    demand = Demand(
        operations={shape.number.unit: shape.flop_count, Operation.SPECIAL: _exponentials(shape)},
        sm_s=max(even_s + fitted.tail_ratio * longest_s, longest_s),
        sm_bound=Bound.TENSOR,
        memory_s=_moved_s(moved, fitted.memory_ratio, chip),
        fixed_s=fitted.launch_s + _moved_s(stored, fitted.cache_ratio, chip),
        dram_bytes=(moved + stored) * missed_ratio(moved, chip),
        l2_bytes=moved
        + stored
        + ctas * mean * KEY_TILE * 2.0 * shape.head_dim * shape.kv_element_bytes,
        exponent=fitted.exponent,
    )
    return demand, ctas, 1


def _tile_count(shape: Shape, fitted: Constants) -> int:
    """CTAs of a prefill: tiles of one head's queries, or of those that share keys."""
    apart = ceil(shape.q_len / QUERY_TILE) * shape.heads
    if not fitted.packs_queries:
        return apart * shape.batch
    group = shape.heads // shape.kv_heads
    return min(apart, ceil(shape.q_len * group / QUERY_TILE) * shape.kv_heads) * shape.batch


def _moved_s(moved: float, ratio: float, chip: Chip) -> float:
    """Time of bytes that L2 holds in part."""
    missed = missed_ratio(moved, chip)
    rate = chip.dram_reached_bytes_per_s * ratio
    return moved * (missed / rate + (1.0 - missed) / chip.l2_bytes_per_s)


def _step_s(shape: Shape, chip: Chip, fitted: Constants) -> float:
    """Time of one CTA's step over a tile of keys, alone on its SM."""
    pairs = float(QUERY_TILE * KEY_TILE)
    peak = chip.flop_per_s(shape.number) / chip.sm_count
    math_s = pairs * 2.0 * (shape.head_dim + shape.value_dim) / (peak * fitted.math_ratio)
    if shape.backward:
        math_s *= BACKWARD_PRODUCTS
    return math_s + pairs / (fitted.exp_per_cycle * chip.clock_hz)


def _exponentials(shape: Shape) -> float:
    return shape.batch * shape.heads * shape.pair_count


def _decode(shape: Shape, chip: Chip, fitted: Constants) -> tuple[Demand, int, int]:
    passes = ceil(shape.q_len * (shape.heads // shape.kv_heads) / DECODE_TILE)
    rows = shape.batch * shape.kv_heads * passes
    grouped = shape.heads > shape.kv_heads
    slots = max(chip.sm_count * fitted.decode_resident, 1.0)
    split = 1
    if grouped or fitted.splits_plain:
        split = _split(rows, ceil(shape.kv_len / SPLIT_TILE), slots)
    ctas = rows * split
    steps = ceil(shape.kv_len / split / KEY_TILE)
    wider = (shape.head_dim + shape.value_dim) / DECODE_WIDTH
    each_s = fitted.decode_cta_s + steps * fitted.decode_step_s * wider
    moved = shape.kv_bytes + shape.query_bytes
    fixed_s = fitted.decode_launch_s
    if split > 1:
        fixed_s += fitted.combine_s
    if grouped and shape.batch > 1 and shape.kv_heads > 1:
        fixed_s += fitted.regroup_s
        fixed_s += 2.0 * shape.query_bytes / (chip.dram_reached_bytes_per_s * fitted.regroup_ratio)
    demand = Demand(
        operations={shape.number.unit: shape.flop_count, Operation.SPECIAL: _exponentials(shape)},
        sm_s=max(ctas / slots, 1.0) * each_s,
        sm_bound=Bound.LATENCY,
        memory_s=_moved_s(moved, fitted.decode_ratio, chip),
        fixed_s=fixed_s,
        dram_bytes=moved * missed_ratio(moved, chip),
        l2_bytes=moved,
        exponent=fitted.decode_exponent,
    )
    return demand, ctas, split


def _split(rows: int, steps: int, slots: float) -> int:
    """CTAs over which one row's keys are spread, so that SMs are busy."""
    if rows >= FULL_RATIO * slots:
        return 1
    most = min(MAX_SPLIT, int(slots), steps)
    filled_ratio = [rows * part / slots / ceil(rows * part / slots) for part in range(1, most + 1)]
    enough = SPLIT_GAIN * max(filled_ratio)
    return next(part for part, ratio in enumerate(filled_ratio, 1) if ratio >= enough)
