"""Which plan is best: every way of training on so many GPUs, priced; and the fewest GPUs at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from va100.errors import PlanError
from va100.plan.machine import Machine
from va100.plan.memory import stage_memories, worst_stage
from va100.plan.training import TrainEstimate, estimate_training
from va100.plan.training_options import Recompute, TrainOptions, check_options
from va100.plan.workload import Transformer

MICRO_BATCHES: Final = (1, 2, 4, 8, 16, 32)
CHUNKS: Final = (1, 2, 4)
MOST_GPUS: Final = 16384
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Plans tried and the best of those that fit, quickest first."""

    tried: int
    fitting: int
    best: tuple[TrainEstimate, ...]


def silent(done: int, total: int) -> None:
    """Tell nobody of progress."""


def candidates(
    model: Transformer, base: TrainOptions, machine: Machine, gpus: int
) -> list[TrainOptions]:
    """Every way to train on exactly so many GPUs that a trainer could run, in a fixed order.

    What ``base`` says of batch, sequence, precision, optimiser, attention and software stays;
    parallel sizes, micro-batch, recomputation, ZeRO stage and chunks are varied.
    """
    found = []
    for tp, pp in product(_sizes(machine.gpus_per_node), _stages(model, gpus)):
        if gpus % (tp * pp * base.cp) or model.heads % tp:
            continue
        dp = gpus // (tp * pp * base.cp)
        choices = product(MICRO_BATCHES, Recompute, _zeros(base, dp), CHUNKS if pp > 1 else (1,))
        for micro_batch, recompute, zero, chunks in choices:
            options = replace(
                base, tp=tp, pp=pp, dp=dp, micro_batch=micro_batch, recompute=recompute, zero=zero,
                chunks=chunks, sequence_parallel=tp > 1, stage_layers=(),
                overlap_gradients=base.overlap_gradients or zero > 0,
            )  # fmt: skip
            if _runs(model, options):
                found.append(options)
    return found


def _sizes(most: int) -> list[int]:
    return [size for size in (1, 2, 4, 8, 16) if size <= most]


def _stages(model: Transformer, gpus: int) -> list[int]:
    return [
        n for n in range(1, min(gpus, model.layers) + 1) if not gpus % n and not model.layers % n
    ]


def _zeros(base: TrainOptions, dp: int) -> tuple[int, ...]:
    if base.zero == 3:
        return (3,)
    return (0, 1) if dp > 1 else (0,)


def _runs(model: Transformer, options: TrainOptions) -> bool:
    if options.global_batch % (options.micro_batch * options.dp):
        return False
    try:
        check_options(model, options)
    except PlanError:
        return False
    return True


def fits(model: Transformer, options: TrainOptions, machine: Machine) -> bool:
    """Whether the heaviest stage's rank fits its GPU."""
    heaviest = worst_stage(stage_memories(model, options))
    return heaviest.device_bytes <= machine.memory_bytes


def search_plans(
    model: Transformer,
    base: TrainOptions,
    machine: Machine,
    gpus: int,
    *,
    keep: int = 5,
    progress: Progress = silent,
) -> SearchResult:
    """Price every candidate that fits and keep the quickest."""
    tried = candidates(model, base, machine, gpus)
    fitting: list[TrainEstimate] = []
    for number, options in enumerate(tried):
        if fits(model, options, machine):
            fitting.append(estimate_training(model, options, machine))
        progress(number + 1, len(tried))
    return SearchResult(tried=len(tried), fitting=len(fitting), best=quickest(fitting, keep))


def quickest(estimates: Sequence[TrainEstimate], keep: int) -> tuple[TrainEstimate, ...]:
    """Quickest plans; among equals the simpler."""
    ranked = sorted(
        estimates, key=lambda e: (e.step_s, e.options.pp, e.options.tp, e.options.chunks)
    )
    return tuple(ranked[:keep])


def smallest_fitting(
    model: Transformer, base: TrainOptions, machine: Machine
) -> TrainEstimate | None:
    """Quickest plan on the fewest GPUs that hold the model; none within reason."""
    for gpus in _counts(machine):
        fitting = [
            estimate_training(model, options, machine)
            for options in candidates(model, base, machine, gpus)
            if fits(model, options, machine)
        ]
        if fitting:
            return quickest(fitting, 1)[0]
    return None


def _counts(machine: Machine) -> Iterator[int]:
    """Counts of GPUs worth trying: within a node by doubling, then whole nodes."""
    count = 1
    while count < machine.gpus_per_node:
        yield count
        count *= 2
    nodes = 1
    while nodes * machine.gpus_per_node <= MOST_GPUS and not machine.is_slice:
        yield nodes * machine.gpus_per_node
        nodes += 1 if nodes < 8 else nodes // 2
    if machine.is_slice:
        yield 1
