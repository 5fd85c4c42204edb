"""A training plan as a document: what scripts read, what people read, what tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from va100.plan.budget import Budget
from va100.plan.memory import StageMemory
from va100.plan.prices import Price
from va100.plan.training import TrainEstimate
from va100.units import GB, time_text

PARTS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
BESIDES: Final = ("fragmentation", "nccl", "context")


def train_document(
    estimate: TrainEstimate, price: Price | None, budget: Budget | None = None
) -> dict[str, Any]:
    """Everything a plan says, in base units; the same plan gives the same document."""
    options, worst = estimate.options, estimate.worst
    document: dict[str, Any] = {
        "fits": estimate.fits,
        "step_s": estimate.step_s,
        "step_s_band": list(estimate.band),
        "tokens_per_s_per_gpu": estimate.tokens_per_s_per_gpu,
        "samples_per_s": options.global_batch / estimate.step_s,
        "mfu": estimate.mfu,
        "hfu": estimate.hfu,
        "model_flop_per_s_per_gpu": estimate.model_flop_count / estimate.step_s / options.gpus,
        "hardware_flop_per_s_per_gpu": estimate.hardware_flop_count
        / estimate.step_s
        / options.gpus,
        "peak_bytes_per_gpu": worst.peak_bytes,
        "peak_parts_bytes": _parts(worst, PARTS),
        "device_bytes_per_gpu": worst.device_bytes,
        "device_besides_bytes": _parts(worst, BESIDES),
        "capacity_bytes_per_gpu": estimate.capacity_bytes,
        "heaviest_stage": worst.stage,
        "stages": [_stage(estimate, memory) for memory in estimate.memories],
        "step_parts_s": {
            name: getattr(estimate.parts, name)
            for name in type(estimate.parts).__dataclass_fields__
        },
        "bubble_ratio": estimate.bubble_ratio,
        "energy_j": estimate.energy_j,
        "mean_power_w_per_gpu": estimate.power_w,
        "cost_usd": _cost_usd(estimate, price),
        "price": _price(price),
        "gpus": options.gpus,
        "nodes": estimate.nodes,
        "machine": estimate.machine.name,
        "model": _model(estimate),
        "plan": plan_document(estimate),
        "basis": basis_document(estimate),
    }
    if budget is not None:
        document["budget"] = budget.document()
    return document


def plan_document(estimate: TrainEstimate) -> dict[str, Any]:
    """The choice that was priced."""
    options = estimate.options
    return {
        "tp": options.tp,
        "pp": options.pp,
        "dp": options.dp,
        "cp": options.cp,
        "ep": options.ep,
        "etp": options.expert_tp,
        "micro_batch": options.micro_batch,
        "global_batch": options.global_batch,
        "micro_batches": options.micro_batches,
        "seq": options.seq,
        "recompute": options.recompute.value,
        "attention": options.attention.value,
        "sequence_parallel": options.sequence_parallel,
        "zero": options.zero,
        "chunks": options.chunks,
        "stage_layers": list(options.layers_of_stages(estimate.model.layers)),
        "precision": options.precision,
        "optimizer": options.optimizer,
        "overlap_gradients": options.overlap_gradients,
        "software": options.stack.name,
    }


def basis_document(estimate: TrainEstimate) -> dict[str, Any]:
    """What each figure rests on."""
    stack = estimate.options.stack
    a100 = estimate.machine.chip.startswith("a100")
    kind = "measured-calibrated" if a100 and not estimate.machine.is_slice else "model"
    peak = "vendor peak" if not a100 else "vendor peak of the A100, which measured products reach"
    return {
        "step_s": kind,
        "step_s_band": f"nine of ten measured steps of {stack.name} came within "
        f"{stack.within_ratio:.0%}"
        if a100
        else "no step on this GPU was compared: the A100's band",
        "peak_bytes_per_gpu": "exact from shapes; workspaces measured-calibrated",
        "device_besides_bytes": "model: assumed constants of allocator, NCCL and CUDA",
        "energy_j": "model",
        "mfu": f"of the {peak}",
    }


def _model(estimate: TrainEstimate) -> dict[str, Any]:
    model = estimate.model
    return {
        "name": model.name,
        "params": model.params,
        "active_params": model.active_params,
        "layers": model.layers,
        "hidden": model.hidden,
    }


def _parts(memory: StageMemory, names: tuple[str, ...]) -> dict[str, int]:
    return {name: getattr(memory, f"{name}_bytes") for name in names}


def _stage(estimate: TrainEstimate, memory: StageMemory) -> dict[str, Any]:
    time = estimate.stages[memory.stage]
    return {
        "stage": memory.stage,
        "layers": memory.layers,
        "params": memory.params,
        "in_flight": memory.in_flight,
        "peak_bytes": memory.peak_bytes,
        "device_bytes": memory.device_bytes,
        "forward_s": time.forward_s,
        "backward_s": time.backward_s,
        "parts_bytes": _parts(memory, PARTS),
    }


def _cost_usd(estimate: TrainEstimate, price: Price | None) -> float | None:
    if price is None:
        return None
    return price.usd_per_gpu_h * estimate.options.gpus * estimate.step_s / 3600


def _price(price: Price | None) -> Mapping[str, Any] | None:
    if price is None:
        return None
    return {
        "usd_per_gpu_h": price.usd_per_gpu_h,
        "source": price.source,
        "date": price.date,
        "market": price.market,
    }


def train_text(document: Mapping[str, Any]) -> str:
    """The same for people."""
    plan = document["plan"]
    low, high = document["step_s_band"]
    lines = [
        f"{document['model']['name']}: {document['model']['params'] / 1e9:.2f} G parameters on "
        f"{document['gpus']} GPUs of {document['machine']}",
        f"  tp {plan['tp']}  pp {plan['pp']}  dp {plan['dp']}  cp {plan['cp']}  ep {plan['ep']}  "
        f"micro-batch {plan['micro_batch']} x {plan['micro_batches']}  recompute "
        f"{plan['recompute']}  attention {plan['attention']}  zero {plan['zero']}  "
        f"{plan['precision']}  {plan['software']}",
        "",
        f"  step      {time_text(document['step_s'])}  ({time_text(low)} to {time_text(high)})",
        f"  rate      {document['tokens_per_s_per_gpu']:.0f} tokens/s a GPU",
        f"  MFU       {document['mfu']:.1%}   HFU {document['hfu']:.1%}",
        f"  energy    {document['energy_j'] / 1e3:.1f} kJ a step, "
        f"{document['mean_power_w_per_gpu']:.0f} W a GPU",
        f"  cost      {_cost_text(document)}",
        "",
        f"  memory of the heaviest rank (stage {document['heaviest_stage']})",
    ]
    lines += [
        f"    {name:<14}{count / GB:8.2f} GB"
        for name, count in (document["peak_parts_bytes"] | document["device_besides_bytes"]).items()
    ]
    lines += [
        f"    {'in all':<14}{document['device_bytes_per_gpu'] / GB:8.2f} GB of "
        f"{document['capacity_bytes_per_gpu'] / GB:.2f} GB"
        f"  (allocator's peak {document['peak_bytes_per_gpu'] / GB:.2f} GB)",
        "",
        "  where the step goes",
    ]
    lines += [
        f"    {name.removesuffix('_s').replace('_', ' '):<20}{part / document['step_s']:7.1%}"
        for name, part in document["step_parts_s"].items()
        if part
    ]
    lines += [f"  basis     {document['basis']['step_s']}; {document['basis']['step_s_band']}"]
    for row in document.get("scaling", ()):
        lines.append(
            f"  {row['gpus']:>6} GPUs  {row['tokens_per_s']:.4g} tokens/s  {row['efficiency']:.1%}"
        )
    if "budget" in document:
        lines += ["", *_budget_lines(document["budget"])]
    return "\n".join(lines)


def _cost_text(document: Mapping[str, Any]) -> str:
    price = document["price"]
    if price is None:
        return "no dated price of this GPU is known; give --usd-per-gpu-h"
    said = f"{price['source']} {price['date']}".strip()
    rate = price["usd_per_gpu_h"]
    return f"${document['cost_usd']:.4f} a step at ${rate:.3f} a GPU-hour ({said})"


def _budget_lines(budget: Mapping[str, Any]) -> list[str]:
    cost = "" if budget["cost_usd"] is None else f", ${budget['cost_usd']:,.0f}"
    return [
        f"  {budget['tokens']:.3g} tokens: {budget['steps']} steps, {budget['days']:.2f} days, "
        f"{budget['energy_kwh']:,.0f} kWh{cost}",
        f"    checkpoints {budget['checkpoint_share']:.2%} of the time, every "
        f"{budget['checkpoint_every_s']:.0f} s; failures {budget['failure_share']:.2%}",
    ]
