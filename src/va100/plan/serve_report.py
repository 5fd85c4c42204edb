"""A way of serving as a document, for scripts and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from va100.plan.calibration import Calibration
from va100.plan.prices import Price
from va100.plan.serve_load import LoadResult
from va100.plan.serving import ServeEstimate
from va100.plan.serving_memory import ServeMemory
from va100.units import GB, time_text


def serve_document(estimate: ServeEstimate, price: Price | None) -> dict[str, Any]:
    """Everything the planner says of a batch that comes at once, in base units."""
    options = estimate.options
    usd = None
    if price is not None:
        usd = price.usd_per_gpu_h * options.gpus / 3600 / estimate.tokens_per_s * 1e6
    heaviest = max(estimate.memories, key=lambda memory: memory.fixed_bytes)
    return {
        "fits": estimate.fits,
        "ttft_s": estimate.ttft_s,
        "ttft_s_band": list(estimate.ttft_band),
        "tpot_s": estimate.tpot_s,
        "tpot_s_band": list(estimate.tpot_band),
        "request_s": estimate.request_s,
        "tokens_per_s": estimate.tokens_per_s,
        "prefill_tokens_per_s": estimate.prefill_tokens_per_s,
        "kv_bytes": estimate.kv_bytes,
        "kv_bytes_available": int(
            estimate.cache_tokens * sum(m.token_bytes for m in estimate.memories) * options.tp
        ),
        "cache_tokens": estimate.cache_tokens,
        "max_context": estimate.max_context,
        "max_batch": estimate.max_batch,
        "weights_bytes_per_gpu": heaviest.weights_bytes,
        "needed_bytes_per_gpu": heaviest.fixed_bytes,
        "reserved_bytes_per_gpu": heaviest.budget_bytes,
        "capacity_bytes_per_gpu": estimate.machine.memory_bytes,
        "stages": [_stage(memory) for memory in estimate.memories],
        "energy_j_per_token": estimate.energy_per_token_j,
        "energy_j_per_million_tokens": estimate.energy_per_token_j * 1e6,
        "mean_power_w_per_gpu": estimate.power_w,
        "cost_usd_per_million_tokens": usd,
        "price": None if price is None else asdict(price),
        "gpus": options.gpus,
        "machine": estimate.machine.name,
        "model": {"name": estimate.model.name, "params": estimate.model.params},
        "plan": {
            "tp": options.tp,
            "pp": options.pp,
            "stage_layers": list(options.layers_of_stages(estimate.model.layers)),
            "batch": options.batch,
            "prompt": options.prompt,
            "output": options.output,
            "weights": options.weights,
            "cache": options.cache,
            "gpu_memory_utilization": options.memory_share,
            "chunk": options.chunk,
            "engine": options.engine.name,
        },
        "basis": _basis(estimate),
    }


def _stage(memory: ServeMemory) -> dict[str, Any]:
    return {
        "stage": memory.stage,
        "layers": memory.layers,
        "weights_bytes": memory.weights_bytes,
        "step_bytes": memory.step_bytes,
        "vision_bytes": memory.vision_bytes,
        "context_bytes": memory.context_bytes,
        "cache_bytes": memory.cache_bytes,
        "token_bytes": memory.token_bytes,
    }


def _basis(estimate: ServeEstimate) -> dict[str, str]:
    engine = estimate.options.engine
    known = estimate.machine.chip.startswith("a100") and not estimate.machine.is_slice
    return {
        "times": "measured-calibrated" if known else "model",
        "band": f"nine of ten measured requests of {engine.name} came within "
        f"{engine.within_ratio:.0%}"
        if known
        else "nothing was measured on this machine: the whole A100's band",
        "memory": "exact from shapes but for context_bytes and vision_bytes, which are assumed",
        "energy": "model",
    }


def load_document(load: LoadResult, estimate: ServeEstimate, price: Price | None) -> dict[str, Any]:
    """What a load meets, in base units."""
    tokens = load.tokens_per_s * load.duration_s
    usd = None
    if price is not None:
        usd = price.usd_per_gpu_h * load.gpus * load.duration_s / 3600 / tokens * 1e6
    return {
        **asdict(load),
        "energy_j_per_million_tokens": load.energy_j / tokens * 1e6,
        "mean_power_w_per_gpu": load.energy_j / load.duration_s / load.gpus,
        "cost_usd_per_million_tokens": usd,
        "machine": estimate.machine.name,
    }


def calibration_document(found: Calibration) -> dict[str, Any]:
    """What a user's measurements shift."""
    return asdict(found)


def serve_text(document: Mapping[str, Any]) -> str:
    """The same for people."""
    plan = document["plan"]
    cost = document["cost_usd_per_million_tokens"]
    lines = [
        f"{document['model']['name']}: {document['model']['params'] / 1e9:.2f} G parameters on "
        f"{document['gpus']} GPUs of {document['machine']}, {plan['engine']}",
        f"  tp {plan['tp']}  pp {plan['pp']}  batch {plan['batch']}  prompt {plan['prompt']}  "
        f"output {plan['output']}  weights {plan['weights']}  cache {plan['cache']}",
        "",
        f"  first token   {_banded(document, 'ttft_s')}",
        f"  each further  {_banded(document, 'tpot_s')}",
        f"  rate          {document['tokens_per_s']:.0f} tokens/s",
        f"  energy        {document['energy_j_per_token']:.2f} J a token, "
        f"{document['mean_power_w_per_gpu']:.0f} W a GPU",
        "  cost          "
        + ("no dated price: give --usd-per-gpu-h" if cost is None else f"${cost:.3f} a million"),
        "",
        f"  weights       {document['weights_bytes_per_gpu'] / GB:.2f} GB a GPU",
        f"  needed        {document['needed_bytes_per_gpu'] / GB:.2f} GB without the cache",
        f"  reserved      {document['reserved_bytes_per_gpu'] / GB:.2f} GB by the server "
        f"({plan['gpu_memory_utilization']:.0%} of the card's "
        f"{document['capacity_bytes_per_gpu'] / GB:.2f} GB)",
        f"  cache         {document['cache_tokens']} tokens; this batch takes "
        f"{document['kv_bytes'] / GB:.2f} GB",
        f"  longest       {document['max_context']} tokens in one sequence; "
        f"{document['max_batch']} sequences of this length",
        f"  basis         {document['basis']['times']}; {document['basis']['band']}",
    ]
    if "calibration" in document:
        found = document["calibration"]
        lines.append(
            f"  calibration   {found['rows']} rows: prefill x{found['prefill_scale']:.3f}, decode "
            f"x{found['decode_scale']:.3f}; error {found['error_before']:.1%} before, "
            f"{found['error_after']:.1%} after"
        )
    if "load" in document:
        lines += ["", *_load_lines(document["load"])]
    return "\n".join(lines)


def _banded(document: Mapping[str, Any], name: str) -> str:
    low, high = document[f"{name}_band"]
    return f"{time_text(document[name])}  ({time_text(low)} to {time_text(high)})"


def _load_lines(load: Mapping[str, Any]) -> list[str]:
    apart = f", {load['prefill_replicas']} of them for prompts" if load["prefill_replicas"] else ""
    lines = [
        f"  load: {load['served']} requests in {load['duration_s']:.1f} s on {load['replicas']} "
        f"replicas{apart}, {load['gpus']} GPUs, busy {load['busy_share']:.0%}",
        f"    {'':<14}{'mean':>10}{'p50':>10}{'p90':>10}{'p99':>10}",
    ]
    for title, name in (("first token", "ttft"), ("each further", "tpot"), ("whole", "latency")):
        row = load[name]
        cells = "".join(f"{time_text(row[key]):>10}" for key in ("mean", "p50", "p90", "p99"))
        lines.append(f"    {title:<14}{cells}")
    lines.append(
        f"    {load['tokens_per_s']:.0f} tokens/s; refused {load['refused']}, "
        f"preempted {load['preempted']}"
    )
    if load["within_goals"] is not None:
        lines.append(f"    within both goals: {load['within_goals']:.2%}")
    return lines
