"""One training step as a Chrome trace: pipeline passes by stage, and the kernels of the first."""

from __future__ import annotations

from typing import Any

from va100.plan.layers import layer_passes, shape_of
from va100.plan.pipeline import Slot, schedule
from va100.plan.training import TrainEstimate, place_of
from va100.units import US

MOST_PASSES = 20_000


def step_trace(estimate: TrainEstimate) -> dict[str, Any]:
    """A trace that chrome://tracing and Perfetto open; times in microseconds."""
    options = estimate.options
    count = min(options.micro_batches, max(MOST_PASSES // (2 * options.pp * options.chunks), 1))
    slots = schedule(estimate.stages, count, options.chunks)
    events: list[dict[str, Any]] = []
    for stage in range(options.pp):
        events.append(_named(stage, f"stage {stage}"))
        events.append(_named(stage, "passes", thread=0))
    events += [_event(slot) for slot in slots]
    events += _kernels(estimate)
    end = max(slot.end_s for slot in slots)
    tail = (("gradients", estimate.parts.gradients_s), ("optimizer", estimate.parts.optimizer_s))
    for name, duration_s in tail:
        if duration_s:
            events += [
                _complete(name, stage, (end, duration_s), {}, "update")
                for stage in range(options.pp)
            ]
        end += duration_s
    shown = {} if count == options.micro_batches else {"micro_batches_shown": count}
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "step_s": estimate.step_s,
            "model": estimate.model.name,
            "basis": "predicted, not measured",
            **shown,
        },
    }


def _named(process: int, name: str, thread: int | None = None) -> dict[str, Any]:
    kind = "process_name" if thread is None else "thread_name"
    return {"ph": "M", "name": kind, "pid": process, "tid": thread or 0, "args": {"name": name}}


def _complete(
    name: str, process: int, when: tuple[float, float], args: dict[str, Any], kind: str
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": kind,
        "pid": process,
        "tid": 0,
        "ts": round(when[0] / US, 3),
        "dur": round(when[1] / US, 3),
        "args": args,
    }


def _event(slot: Slot) -> dict[str, Any]:
    name = f"{'B' if slot.backward else 'F'}{slot.micro_batch}"
    args = {"micro_batch": slot.micro_batch, "chunk": slot.chunk}
    when = (slot.start_s, slot.end_s - slot.start_s)
    return _complete(name, slot.stage, when, args, "backward" if slot.backward else "forward")


def _kernels(estimate: TrainEstimate) -> list[dict[str, Any]]:
    """Kernels of one layer, forward and backward, on a track of their own."""
    options = estimate.options
    shape = shape_of(options, place_of(estimate.machine))
    passes = layer_passes(estimate.model, shape, has_experts=estimate.model.has_experts(0))
    events, at = [_named(options.pp, "one layer, one micro-batch")], 0.0
    for kind, pieces in (("forward", passes.forward), ("backward", passes.backward)):
        for piece in pieces:
            if not piece.cost.time_s:
                continue
            args = {"flop": piece.cost.flop_count, "joules": piece.cost.energy_j}
            group = "exchange" if piece.communicates else kind
            when = (at, piece.cost.time_s)
            events.append(_complete(piece.name, options.pp, when, args, group))
            at += piece.cost.time_s
    return events
