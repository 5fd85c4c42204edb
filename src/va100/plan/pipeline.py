"""When the micro-batches of a step run: one-forward-one-backward, plain or interleaved.

Closed forms for whole steps, and the schedule itself, event by event, for traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds of one micro-batch in one stage, all of its chunks together."""

    forward_s: float
    backward_s: float

    @property
    def both_s(self) -> float:
        """Forward and backward."""
        return self.forward_s + self.backward_s


@dataclass(frozen=True, slots=True)
class Slot:
    """A pass of one micro-batch in one stage."""

    stage: int
    micro_batch: int
    chunk: int
    backward: bool
    start_s: float
    end_s: float


def pipeline_s(stages: Sequence[StageTime], micro_batches: int, chunks: int = 1) -> float:
    """Time of all micro-batches through all stages.

    The slowest stage works without a gap once the pipeline is full; filling and draining take
    every other stage's passes once, divided by the chunks of the interleaved schedule.
    """
    slowest = max(stage.both_s for stage in stages)
    ramp = sum(stage.both_s for stage in stages) - slowest
    return micro_batches * slowest + ramp / chunks


def bubble_ratio(stages: Sequence[StageTime], micro_batches: int, chunks: int = 1) -> float:
    """Share of the slowest stage's time that it waits."""
    whole = pipeline_s(stages, micro_batches, chunks)
    return 1.0 - micro_batches * max(stage.both_s for stage in stages) / whole


def schedule(
    stages: Sequence[StageTime], micro_batches: int, chunks: int = 1, hop_s: float = 0.0
) -> tuple[Slot, ...]:
    """Every pass of a step with its start and end, as the schedule orders them."""
    orders = [
        stage_order(stage, len(stages), micro_batches, chunks) for stage in range(len(stages))
    ]
    done: dict[tuple[int, int, int, bool], float] = {}
    free = [0.0] * len(stages)
    slots: list[Slot] = []
    position = [0] * len(stages)
    left = sum(len(order) for order in orders)
    while left:
        moved = False
        for stage, order in enumerate(orders):
            while position[stage] < len(order):
                micro_batch, chunk, backward = order[position[stage]]
                needs = _before(stage, micro_batch, chunk, backward, len(stages), chunks)
                if needs is not None and needs not in done:
                    break
                ready = 0.0 if needs is None else done[needs] + hop_s
                start = max(free[stage], ready)
                each = stages[stage].backward_s if backward else stages[stage].forward_s
                end = start + each / chunks
                done[stage, micro_batch, chunk, backward] = free[stage] = end
                slots.append(Slot(stage, micro_batch, chunk, backward, start, end))
                position[stage] += 1
                left -= 1
                moved = True
        if not moved:
            raise RuntimeError("the schedule waits for itself")
    return tuple(sorted(slots, key=lambda slot: (slot.start_s, slot.stage)))


def stage_order(
    stage: int, count: int, micro_batches: int, chunks: int
) -> list[tuple[int, int, bool]]:
    """Passes of one stage in order: micro-batch, chunk, whether backward."""
    forward = _virtual_order(count, micro_batches, chunks, backward=False)
    backward = _virtual_order(count, micro_batches, chunks, backward=True)
    warm = count - stage - 1
    if chunks > 1:
        warm = 2 * warm + (chunks - 1) * count
    warm = min(warm, len(forward))
    order = [(*item, False) for item in forward[:warm]]
    for number, item in enumerate(forward[warm:]):
        order += [(*item, False), (*backward[number], True)]
    return order + [(*item, True) for item in backward[len(forward) - warm :]]


def _virtual_order(
    count: int, micro_batches: int, chunks: int, *, backward: bool
) -> list[tuple[int, int]]:
    """Order of micro-batches and chunks: groups of as many micro-batches as stages."""
    if chunks == 1:
        return [(micro_batch, 0) for micro_batch in range(micro_batches)]
    order = []
    for first in range(0, micro_batches, count):
        group = range(first, min(first + count, micro_batches))
        turns = range(chunks - 1, -1, -1) if backward else range(chunks)
        order += [(micro_batch, chunk) for chunk in turns for micro_batch in group]
    return order


def _before(
    stage: int, micro_batch: int, chunk: int, backward: bool, count: int, chunks: int  # noqa: FBT001
) -> tuple[int, int, int, bool] | None:  # fmt: skip
    """Pass whose result this one needs."""
    if not backward:
        if stage:
            return stage - 1, micro_batch, chunk, False
        return (count - 1, micro_batch, chunk - 1, False) if chunk else None
    if stage < count - 1:
        return stage + 1, micro_batch, chunk, True
    if chunk < chunks - 1:
        return 0, micro_batch, chunk + 1, True
    return stage, micro_batch, chunk, False
