"""``va100 plan compare``: one piece of work on several machines, with what it costs on each."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from va100.cli.plan_options import (
    DOES_NOT_FIT,
    FITS,
    add_output_options,
    count,
    positive,
    print_document,
)
from va100.errors import PlanError
from va100.plan.machine import Machine, find_machine
from va100.plan.models.files import read_model
from va100.plan.networks import IMAGES, NETWORKS
from va100.plan.prices import price_of
from va100.plan.search import search_plans
from va100.plan.serving import estimate_serving
from va100.plan.serving_options import ServeOptions
from va100.plan.stacks import MEGATRON_CORE
from va100.plan.training_options import TrainOptions
from va100.plan.vision import VisionOptions, estimate_vision
from va100.units import GB, TERA


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the kind of work to the command line."""
    parser = subparsers.add_parser(
        "compare",
        help="the same work on several machines: rate, cost and energy of each",
        description="Price the same work on several machines, each with its best plan, beside the "
        "figures that decide: tensor-core rate, memory, and how many GPUs share the work.",
    )
    parser.add_argument(
        "--machine",
        action="append",
        required=True,
        metavar="MACHINE[=USD]",
        help="again for each; USD is the whole machine's price an hour",
    )
    parser.add_argument("--task", choices=("train", "serve", "vision"), default="train")
    parser.add_argument("--model", required=True, metavar="FILE", help="or a network, for vision")
    parser.add_argument("--batch", type=count, default=32, metavar="B", help="of a replica or GPU")
    parser.add_argument("--global-batch", type=count, default=256, metavar="G", help="train")
    parser.add_argument("--seq", type=count, default=2048, metavar="S", help="train")
    parser.add_argument("--prompt", type=count, default=1024, metavar="N", help="serve")
    parser.add_argument("--output", type=count, default=256, metavar="N", help="serve")
    parser.add_argument("--train", action="store_true", help="vision: a training step")
    parser.add_argument(
        "--goal-tpot", type=positive, metavar="S", help="serve: left out when slower"
    )
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Price the work on every machine; the result is the exit status."""
    rows = [_row(args, text) for text in args.machine]
    fitting = [row for row in rows if row["fits"]]
    ranked = sorted(fitting, key=lambda row: (row["usd_per_million"] or 0.0, row["machine"]))
    document = {
        "fits": bool(fitting),
        "task": args.task,
        "unit": {"train": "tokens", "serve": "tokens", "vision": "images"}[args.task],
        "rows": rows,
        "cheapest": ranked[0]["machine"] if ranked else None,
        "quickest": max(fitting, key=lambda row: row["per_s"])["machine"] if fitting else None,
    }
    print_document(args, document, _text(document))
    return FITS if fitting else DOES_NOT_FIT


def _row(args: argparse.Namespace, text: str) -> dict[str, Any]:
    name, _, usd = text.partition("=")
    machine = find_machine(name)
    try:
        hour = positive(usd) if usd else None
    except argparse.ArgumentTypeError as error:
        raise PlanError(f"--machine {text}: {error}", hint="such as 4x-t4=1.40") from error
    if hour is None:
        price = price_of(machine, None)
        hour = None if price is None else price.usd_per_gpu_h * machine.gpus_per_node
    rate, energy, problem = _RATES[args.task](args, machine)
    million = None
    if rate and hour is not None:
        million = hour / 3600 / rate * 1e6
    a100 = machine.chip.startswith("a100")
    return {
        "machine": machine.name,
        "gpus": machine.gpus_per_node,
        "fits": rate > 0,
        "problem": problem,
        "per_s": rate,
        "energy_j_per_unit": energy,
        "usd_per_h": hour,
        "usd_per_million": million,
        "tensor_flop_per_s": machine.tensor_flop_per_s * machine.gpus_per_node,
        "memory_bytes_per_gpu": machine.memory_bytes,
        "memory_bytes_per_s": machine.memory_bytes_per_s * machine.gpus_per_node,
        "basis": "measured-calibrated" if a100 else "vendor peak, at an A100's share of it",
    }


def _train(args: argparse.Namespace, machine: Machine) -> tuple[float, float | None, str]:
    model = read_model(Path(args.model))
    old = any(name in machine.chip for name in ("v100", "t4"))
    base = TrainOptions(
        seq=args.seq,
        global_batch=args.global_batch,
        stack=MEGATRON_CORE,
        precision="fp16" if old else "bf16",
        overlap_gradients=True,
    )
    found = search_plans(model, base, machine, machine.gpus_per_node, keep=1)
    if not found.best:
        return 0.0, None, f"no plan fits {machine.gpus_per_node} GPUs"
    best = found.best[0]
    tokens = base.global_batch * base.seq
    return tokens / best.step_s, best.energy_j / tokens, ""


def _serve(args: argparse.Namespace, machine: Machine) -> tuple[float, float | None, str]:
    model = read_model(Path(args.model))
    old = any(name in machine.chip for name in ("v100", "t4"))
    base = ServeOptions(
        batch=args.batch,
        prompt=args.prompt,
        output=args.output,
        weights="fp16" if old else "bf16",
        cache="fp16" if old else "bf16",
    )
    best: tuple[float, float | None, str] = (0.0, None, "no split over its GPUs fits")
    for tp in (1, 2, 4, 8):
        if machine.gpus_per_node % tp or model.heads % tp:
            continue
        found = estimate_serving(model, replace(base, tp=tp), machine)
        replicas = machine.gpus_per_node // tp
        late = args.goal_tpot is not None and found.tpot_s > args.goal_tpot
        if found.fits and not late and found.tokens_per_s * replicas > best[0]:
            best = (found.tokens_per_s * replicas, found.energy_per_token_j, "")
    return best


def _vision(args: argparse.Namespace, machine: Machine) -> tuple[float, float | None, str]:
    if args.model not in NETWORKS:
        raise PlanError(f"no network {args.model!r}", hint=", ".join(NETWORKS))
    network = NETWORKS[args.model](IMAGES[args.model])
    options = VisionOptions(batch=args.batch, training=args.train, gpus=machine.gpus_per_node)
    found = estimate_vision(network, options, machine)
    if not found.fits:
        return 0.0, None, f"needs {found.peak_bytes / GB:.1f} GB a GPU"
    return found.per_s, found.energy_j / found.per_s / found.latency_s, ""


_RATES = {"train": _train, "serve": _serve, "vision": _vision}


def _text(document: dict[str, Any]) -> str:
    unit = document["unit"]
    lines = [
        f"{'machine':<26}{unit + '/s':>12}{'$/h':>9}{'$/million':>11}{'J each':>9}"
        f"{'TFLOP/s':>9}{'GB each':>9}"
    ]
    for row in document["rows"]:
        if not row["fits"]:
            lines.append(f"{row['machine']:<26}{row['problem']}")
            continue
        hour = "-" if row["usd_per_h"] is None else f"{row['usd_per_h']:.2f}"
        million = "-" if row["usd_per_million"] is None else f"{row['usd_per_million']:.3f}"
        lines.append(
            f"{row['machine']:<26}{row['per_s']:>12.4g}{hour:>9}{million:>11}"
            f"{row['energy_j_per_unit']:>9.3g}{row['tensor_flop_per_s'] / TERA:>9.0f}"
            f"{row['memory_bytes_per_gpu'] / GB:>9.1f}"
        )
    lines.append(f"cheapest: {document['cheapest']}; quickest: {document['quickest']}")
    lines += [
        f"{row['machine']}: {row['basis']}"
        for row in document["rows"]
        if row["basis"] != "measured-calibrated"
    ]
    return "\n".join(lines)
