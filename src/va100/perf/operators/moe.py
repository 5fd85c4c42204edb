"""Mixtures of experts: routing, and the experts' products grouped in one launch.

Each expert's tokens are rows of a product of their own, padded to a tile; experts that got a token
are read from memory, the others are not.  How even the routing is decides both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final

from va100.perf.kernel import Bound
from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import Demand, OperatorEstimate, filled
from va100.perf.operators.formats import Format, find_format
from va100.perf.operators.gemm import require_positive
from va100.units import US


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeEstimate(OperatorEstimate):
    """A layer of experts' predicted time."""

    active_experts: float
    """Of this GPU's, those that got a token."""
    weight_bytes: float
    """Read of them."""
    padding_ratio: float
    """Rows reckoned over rows routed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What was fitted, on an A100 at 1410 MHz (docs/operators.md)."""

    fixed_s: float = 30.0 * US
    """Routing, sorting and the launches."""
    token_s: float = 0.001 * US
    math_ratio: float = 0.62
    memory_ratio: float = 0.85
    cta_s: float = 2.0 * US


FITTED: Final = Constants()


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
    gated: bool = True,
    dtype: str = "bf16",
    chip: str = DEFAULT,
) -> MoeEstimate:
    """Predict one GPU's time for the experts of one layer.

    Parameters
    ----------
    tokens : int
        Tokens routed, over all GPUs that share the experts.
    inter : int
        Width of one expert, before it is split ``tp`` ways.
    ep : int
        GPUs that the experts are spread over.

    Raises
    ------
    ValueError
        Sizes that don't fit together, an unknown format or chip, a format the chip lacks.
    """
    require_positive(
        tokens=tokens, hidden=hidden, inter=inter, topk=topk, experts=experts, tp=tp, ep=ep
    )
    if topk > experts:
        raise ValueError(f"topk {topk} is more than the {experts} experts")
    if experts % ep or inter % tp:
        raise ValueError(f"{experts} experts over ep={ep}, width {inter} over tp={tp}: not whole")
    target, number = find_chip(chip), find_format(dtype)
    width = inter // tp
    local = experts // ep
    routed = float(tokens) * topk / ep
    active = local * (1.0 - (1.0 - topk / experts) ** tokens)
    matrices = 3 if gated else 2
    rows = _padded_rows(routed, max(active, 1.0))
    weight_bytes = active * matrices * hidden * width * number.weight_bytes
    flop_count = 2.0 * routed * matrices * hidden * width
    demand = _demand(target, number, rows, flop_count * rows / max(routed, 1e-9), weight_bytes)
    return MoeEstimate(
        **filled(demand, target, bands.MOE, flop_count),  # type: ignore[arg-type]
        active_experts=active,
        weight_bytes=weight_bytes,
        padding_ratio=rows / routed,
    )


def _padded_rows(routed: float, active: float) -> float:
    """Rows reckoned, each expert's padded to the tile that fits it best."""
    each = routed / active
    return active * min(
        ceil(each / tile) * tile * (1.0 + 16.0 / tile) for tile in (16, 32, 64, 128)
    )


def _demand(
    chip: Chip, number: Format, rows: float, padded_flop: float, weight_bytes: float
) -> Demand:
    fitted = FITTED
    return Demand(
        operations={number.unit: padded_flop},
        sm_s=padded_flop / (chip.flop_per_s(number) * fitted.math_ratio) + fitted.cta_s,
        sm_bound=Bound.TENSOR,
        memory_s=weight_bytes / (chip.dram_reached_bytes_per_s * fitted.memory_ratio),
        fixed_s=fitted.fixed_s + rows * fitted.token_s,
        dram_bytes=weight_bytes,
        l2_bytes=2.0 * weight_bytes,
    )
