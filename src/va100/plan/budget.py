"""A whole training run: steps to a token budget, checkpoints, failures, days and dollars."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from va100.plan.prices import Price
from va100.plan.training import TrainEstimate

MTBF_GPU_S: Final = 50_000 * 3600.0
"""Mean time between failures of one GPU in a large job, hours: published logs of jobs on thousands
of GPUs give 30,000 to 60,000; assumed, and an option."""
CHECKPOINT_BYTES_PER_S: Final = 2e9
"""Rate at which one node writes a checkpoint to shared storage; assumed, and an option."""
RESTART_S: Final = 600.0
"""From a failure to the first new step; assumed, and an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOptions:
    """What a run is reckoned with."""

    tokens: float
    mtbf_gpu_s: float = MTBF_GPU_S
    checkpoint_bytes_per_s: float = CHECKPOINT_BYTES_PER_S
    restart_s: float = RESTART_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Time, energy and money of a run."""

    tokens: float
    steps: int
    days: float
    compute_days: float
    checkpoint_bytes: int
    checkpoint_s: float
    checkpoint_every_s: float
    checkpoint_share: float
    failure_share: float
    failures: float
    energy_kwh: float
    gpu_hours: float
    cost_usd: float | None

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def budget_of(estimate: TrainEstimate, asked: BudgetOptions, price: Price | None) -> Budget:
    """Reckon a run at the best interval of checkpoints (Young's: the root of twice the product)."""
    options = estimate.options
    steps = math.ceil(asked.tokens / (options.global_batch * options.seq))
    compute_s = steps * estimate.step_s
    held = estimate.model.params * (options.format.weight_bytes + options.state_bytes)
    save_s = held / (asked.checkpoint_bytes_per_s * estimate.nodes)
    mtbf_s = asked.mtbf_gpu_s / options.gpus
    every_s = math.sqrt(2 * save_s * mtbf_s)
    checkpoint_share = save_s / every_s
    failure_share = (every_s / 2 + asked.restart_s) / mtbf_s
    whole_s = compute_s * (1 + checkpoint_share) / max(1 - failure_share, 0.01)
    gpu_hours = whole_s * options.gpus / 3600
    return Budget(
        tokens=asked.tokens,
        steps=steps,
        days=whole_s / 86400,
        compute_days=compute_s / 86400,
        checkpoint_bytes=int(held),
        checkpoint_s=save_s,
        checkpoint_every_s=every_s,
        checkpoint_share=checkpoint_share,
        failure_share=failure_share,
        failures=whole_s / mtbf_s,
        energy_kwh=estimate.energy_j * steps * whole_s / compute_s / 3.6e6,
        gpu_hours=gpu_hours,
        cost_usd=None if price is None else gpu_hours * price.usd_per_gpu_h,
    )
