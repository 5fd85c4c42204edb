"""Plans as one HTML file that needs nothing else: charts, and the whole document as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Final

from va100.errors import PlanError
from va100.plan.charts import Line, line_chart, stack_chart, timeline
from va100.plan.layers import layer_passes, shape_of
from va100.plan.machine import Machine
from va100.plan.pipeline import schedule
from va100.plan.prices import Price
from va100.plan.training import TrainEstimate, estimate_training, place_of
from va100.units import GB, TERA

STYLE: Final = (
    "body{font-family:sans-serif;max-width:760px;margin:2em auto;color:#222}"
    "table{border-collapse:collapse;font-size:12px}td{border-bottom:1px solid #ddd;padding:2px 8px}"
    "pre{background:#f6f6f6;padding:8px;overflow-x:auto}"
)
MOST_STAGES: Final = 16
MOST_MICRO_BATCHES: Final = 24
SCALES: Final = (1, 2, 4, 8, 16)


def train_page(estimate: TrainEstimate, document: Mapping[str, Any], price: Price | None) -> str:
    """Report of a training plan: roofline, memory, timeline, scaling, cost."""
    curve = scaling_curve(estimate)
    charts = [
        roofline_chart(estimate),
        stack_chart(
            "Memory of each stage's GPU",
            {
                f"stage {memory.stage}": {
                    name: getattr(memory, f"{name}_bytes") / GB
                    for name in (
                        "weights", "gradients", "optimizer", "activations", "logits", "buffers",
                        "fragmentation", "nccl", "context",
                    )
                }
                for memory in estimate.memories[:MOST_STAGES]
            },
            estimate.capacity_bytes / GB,
            "GB",
        ),
        _timeline(estimate),
        stack_chart(
            "Where the step goes",
            {
                "step": {
                    name.removesuffix("_s").replace("_", " "): part
                    for name, part in document["step_parts_s"].items()
                    if part
                }
            },
            estimate.step_s,
            "s",
        ),
        line_chart(
            "Scaling: more replicas, the same batch each",
            [
                Line("predicted", [(float(n), rate) for n, rate in curve]),
                Line("ideal", [(float(n), curve[0][1] * n / curve[0][0]) for n, _ in curve]),
            ],
            ("GPUs", "tokens/s"),
        ),
    ]  # fmt: skip
    if price is not None:
        charts.append(
            line_chart(
                "Cost of a million tokens",
                [
                    Line(
                        "dollars",
                        [(float(n), n * price.usd_per_gpu_h / 3600 / r * 1e6) for n, r in curve],
                    )
                ],
                ("GPUs", "dollars a million tokens"),
            )
        )
    return page(f"Training {estimate.model.name}", charts, document)


def scaling_curve(estimate: TrainEstimate) -> list[tuple[int, float]]:
    """GPUs and tokens a second with more replicas of the same batch; what cannot be is left out."""
    options, found = estimate.options, []
    for scale in SCALES:
        wider = replace(options, dp=options.dp * scale, global_batch=options.global_batch * scale)
        try:
            priced = estimate_training(estimate.model, wider, estimate.machine)
        except PlanError:
            continue
        found.append((wider.gpus, priced.tokens_per_s_per_gpu * wider.gpus))
    return found


def roofline_chart(estimate: TrainEstimate) -> str:
    """Kernels of a layer under the roof of the tensor cores and of the memory."""
    machine = estimate.machine
    shape = shape_of(estimate.options, place_of(machine))
    passes = layer_passes(estimate.model, shape)
    points = []
    for piece in (*passes.forward, *passes.backward):
        if piece.cost.flop_count and piece.cost.time_s:
            moved = max(_moved_bytes(estimate, piece.name), 1.0)
            points.append(
                (piece.cost.flop_count / moved, piece.cost.flop_count / piece.cost.time_s / TERA)
            )
    return line_chart(
        "Roofline of one layer's products",
        [_roof(machine, points), Line("kernels", points, dots=True)],
        ("operations a byte", "TFLOP/s"),
    )


def _roof(machine: Machine, points: Sequence[tuple[float, float]]) -> Line:
    ridge = machine.tensor_flop_per_s / machine.memory_bytes_per_s
    low = min([ridge / 10, *(x for x, _ in points)])
    high = max([ridge * 10, *(x for x, _ in points)])
    slope = machine.memory_bytes_per_s / TERA
    top = machine.tensor_flop_per_s / TERA
    return Line("roof", [(low, low * slope), (ridge, top), (high, top)])


def _moved_bytes(estimate: TrainEstimate, name: str) -> float:
    """Least bytes of a layer's product: both operands and the result once."""
    model, options = estimate.model, estimate.options
    tokens = options.micro_batch * options.seq // options.cp
    each = options.format.activation_bytes
    query = model.heads * model.head_dim // options.tp
    keys = 2 * max(model.kv_heads // options.tp, 1) * model.head_dim
    width = max(model.ffn // options.tp, 1)
    shapes = {
        "attention qkv": (model.hidden, query + keys),
        "attention out": (query, model.hidden),
        "mlp up": (model.hidden, width * (2 if model.gated else 1)),
        "mlp down": (width, model.hidden),
    }
    for title, (k, n) in shapes.items():
        if name.startswith(title):
            return float(each * (tokens * k + k * n + tokens * n))
    return float(each * tokens * (2 * query + keys))


def _timeline(estimate: TrainEstimate) -> str:
    options = estimate.options
    count = min(options.micro_batches, MOST_MICRO_BATCHES)
    if options.chunks > 1:
        count = max(count // options.pp, 1) * options.pp
    slots = schedule(estimate.stages, count, options.chunks)
    shown = [slot for slot in slots if slot.stage < MOST_STAGES]
    spans = [
        (
            slot.stage,
            slot.start_s,
            slot.end_s,
            f"{'backward' if slot.backward else 'forward'} {slot.micro_batch}",
            3 if slot.backward else 0,
        )
        for slot in shown
    ]
    title = f"Timeline of {count} of {options.micro_batches} micro-batches"
    return timeline(title, spans, min(options.pp, MOST_STAGES))


def plain_page(title: str, document: Mapping[str, Any]) -> str:
    """Report of any other plan: its memory as a stack, load and prices as they are."""
    charts = []
    parts = document.get("peak_parts_bytes")
    if parts is None and document.get("stages"):
        parts = {
            name.removesuffix("_bytes"): document["stages"][0][name]
            for name in (
                "weights_bytes",
                "step_bytes",
                "vision_bytes",
                "context_bytes",
                "cache_bytes",
            )
        }
    if parts:
        charts.append(
            stack_chart(
                "Memory of a GPU",
                {"GPU": {name: value / GB for name, value in parts.items()}},
                document["capacity_bytes_per_gpu"] / GB,
                "GB",
            )
        )
    if "load" in document:
        rows = {
            name: {"p50": document["load"][name]["p50"],
                   "to p90": document["load"][name]["p90"] - document["load"][name]["p50"],
                   "to p99": document["load"][name]["p99"] - document["load"][name]["p90"]}
            for name in ("ttft", "tpot", "latency")
        }  # fmt: skip
        most = max(sum(row.values()) for row in rows.values())
        charts.append(stack_chart("Latencies under the load", rows, most, "s"))
    if "offers" in document:
        offers = {
            f"{one['source'][:10]} {one['market'][:4]}": {"dollars": one["usd_per_used_h"]}
            for one in document["offers"][:12]
        }
        own = document["own"]["usd_per_used_h"]
        charts.append(stack_chart("An hour of work; the line is owning", offers, own, "$"))
    return page(title, charts, document)


def page(title: str, charts: Sequence[str], document: Mapping[str, Any]) -> str:
    """One HTML file."""
    data = escape(json.dumps(document, indent=1))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n<p>Predicted by va100, not measured.</p>\n"
        + "\n".join(chart for chart in charts if chart)
        + f"\n<h2>All of it</h2>\n<details><summary>JSON</summary><pre>{data}</pre></details>\n"
        "</body></html>\n"
    )
