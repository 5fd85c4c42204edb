"""``va100 plan train``: one way of training priced, or the best of all ways."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from va100.cli.plan_options import (
    DOES_NOT_FIT,
    FITS,
    add_machine_options,
    add_output_options,
    chosen_machine,
    count,
    positive,
    print_document,
    progress_bar,
    write_file,
)
from va100.errors import PlanError
from va100.plan.budget import (
    CHECKPOINT_BYTES_PER_S,
    MTBF_GPU_S,
    RESTART_S,
    BudgetOptions,
    budget_of,
)
from va100.plan.html import scaling_curve, train_page
from va100.plan.layers import Place
from va100.plan.machine import Machine
from va100.plan.models.files import read_model
from va100.plan.prices import price_of
from va100.plan.search import smallest_fitting
from va100.plan.stacks import MEGATRON_CORE, MEGATRON_LM, STACKS, Attention, Stack
from va100.plan.step_trace import step_trace
from va100.plan.sweep import PLACES, Where, sweep_plans
from va100.plan.train_report import train_document, train_text
from va100.plan.training import TrainEstimate, estimate_training
from va100.plan.training_options import OPTIMIZERS, PRECISIONS, Recompute, TrainOptions
from va100.plan.workload import Transformer
from va100.units import GB


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the kind of work to the command line."""
    parser = subparsers.add_parser(
        "train",
        help="step time, memory, MFU, energy and cost of training a transformer",
        description="Price one training step of a transformer, and the run to a token budget. "
        "With --search, parallel sizes are chosen instead of given.",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="FILE",
        type=Path,
        help="config.json or YAML (docs/planning.md)",
    )
    add_machine_options(parser)
    _add_parallel_options(parser)
    _add_numeric_options(parser)
    _add_run_options(parser)
    add_output_options(parser)
    parser.add_argument(
        "--scaling", action="store_true", help="also price 2 to 16 times as many replicas"
    )
    parser.add_argument("--trace", metavar="FILE", help="also write one step as a Chrome trace")


def _add_parallel_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("parallelism")
    group.add_argument(
        "--nodes", type=count, metavar="N", help="nodes (default: as few as hold the ranks)"
    )
    group.add_argument("--tp", type=count, default=1, metavar="T", help="tensor-parallel ranks")
    group.add_argument("--pp", type=count, default=1, metavar="P", help="pipeline stages")
    group.add_argument(
        "--dp", type=count, metavar="D", help="replicas (default: what --nodes leaves)"
    )
    group.add_argument("--cp", type=count, default=1, metavar="C", help="context-parallel ranks")
    group.add_argument("--ep", type=count, default=1, metavar="E", help="expert-parallel ranks")
    group.add_argument(
        "--etp",
        type=count,
        default=0,
        metavar="T",
        help="ranks that share one expert (default: --tp)",
    )
    group.add_argument(
        "--sequence-parallel", action="store_true", help="split norms and dropout over --tp too"
    )
    group.add_argument(
        "--chunks",
        type=count,
        default=1,
        metavar="V",
        help="model chunks a stage (interleaved schedule)",
    )
    group.add_argument(
        "--stage-layers", type=_counts, default=(), metavar="L,L,..", help="layers of each stage"
    )
    group.add_argument(
        "--zero",
        type=int,
        choices=(0, 1, 2, 3),
        help="ZeRO stage; 1 is Megatron's distributed optimizer, 3 is FSDP (default: 0, and 3 with "
        "--software fsdp)",
    )
    group.add_argument(
        "--search", action="store_true", help="try all ways on these nodes and show the best"
    )
    group.add_argument(
        "--workers", type=count, default=1, metavar="N", help="processes of --search here"
    )
    group.add_argument(
        "--on", choices=PLACES, default="here", help="where --search runs (default: %(default)s)"
    )


def _add_numeric_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("batch and numbers")
    group.add_argument("--micro-batch", type=count, default=1, metavar="B", help="sequences a pass")
    group.add_argument(
        "--global-batch",
        type=count,
        metavar="G",
        help="sequences a step (default: micro-batch x dp x pp)",
    )
    group.add_argument(
        "--seq",
        type=count,
        default=2048,
        metavar="S",
        help="tokens a sequence (default: %(default)s)",
    )
    group.add_argument(
        "--recompute",
        choices=[r.value for r in Recompute],
        default="none",
        help="activations computed again (default: %(default)s)",
    )
    group.add_argument(
        "--attention", choices=[a.value for a in Attention], help="default: as --software does it"
    )
    group.add_argument(
        "--precision", choices=sorted(PRECISIONS), help="default: fp16 for megatron-lm, else bf16"
    )
    group.add_argument("--optimizer", choices=OPTIMIZERS, default="adam")
    group.add_argument(
        "--software",
        choices=sorted(STACKS),
        help="whose overheads are reckoned (default: megatron-lm for models with layer norms and "
        "no shared key heads, as its time's were; else megatron-core)",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("whole run")
    group.add_argument("--tokens", type=positive, metavar="N", help="token budget, such as 300e9")
    group.add_argument(
        "--mtbf-gpu-h",
        type=positive,
        default=MTBF_GPU_S / 3600,
        metavar="H",
        help="hours between failures of one GPU (default: %(default).0f)",
    )
    group.add_argument(
        "--checkpoint-gb-per-s",
        type=positive,
        default=CHECKPOINT_BYTES_PER_S / GB,
        metavar="R",
        help="a node's rate to storage (default: %(default).0f)",
    )
    group.add_argument(
        "--restart-s",
        type=positive,
        default=RESTART_S,
        metavar="S",
        help="from failure to the next step (default: %(default).0f)",
    )


def run(args: argparse.Namespace) -> int:
    """Price what the command line asks; the result is the exit status."""
    model, machine = read_model(args.model), chosen_machine(args)
    options = _options(args, model, machine)
    if args.search:
        return _search(args, model, options, machine)
    estimate = estimate_training(model, options, machine, args.nodes or 0)
    document = _document(args, estimate)
    if args.trace:
        write_file(args.trace, json.dumps(step_trace(estimate)))
    if estimate.fits:
        page = _page(args, estimate, document) if args.html else None
        print_document(args, document, train_text(document), page)
        return FITS
    return _refuse(args, estimate, document)


def _page(args: argparse.Namespace, estimate: TrainEstimate, document: dict[str, Any]) -> str:
    return train_page(estimate, document, price_of(estimate.machine, args.usd_per_gpu_h))


def _options(args: argparse.Namespace, model: Transformer, machine: Machine) -> TrainOptions:
    stack = STACKS[args.software] if args.software else usual_stack(model)
    dp = args.dp or _replicas(args, machine)
    zero = args.zero if args.zero is not None else (3 if stack.name == "fsdp" else 0)
    precision = args.precision or ("fp16" if stack is MEGATRON_LM else "bf16")
    options = TrainOptions(
        tp=args.tp,
        pp=args.pp,
        dp=dp,
        cp=args.cp,
        ep=args.ep,
        etp=args.etp,
        micro_batch=args.micro_batch,
        global_batch=args.global_batch or args.micro_batch * dp * args.pp,
        seq=args.seq,
        recompute=Recompute(args.recompute),
        attention=Attention(args.attention) if args.attention else stack.attention,
        sequence_parallel=args.sequence_parallel,
        zero=zero,
        chunks=args.chunks,
        precision=precision,
        optimizer=args.optimizer,
        overlap_gradients=stack.overlaps_gradients,
        stage_layers=args.stage_layers,
        stack=stack,
    )
    _check_nodes(args, options, machine)
    return options


def usual_stack(model: Transformer) -> Stack:
    """Software that trains such a model: layer norms and no shared keys are of 2021."""
    old = not model.rms_norm and model.heads == model.kv_heads and model.experts is None
    return MEGATRON_LM if old else MEGATRON_CORE


def _replicas(args: argparse.Namespace, machine: Machine) -> int:
    if args.nodes is None:
        return 1
    ranks = args.tp * args.pp * args.cp
    gpus = args.nodes * machine.gpus_per_node
    if gpus % ranks:
        raise PlanError(
            f"--tp x --pp x --cp = {ranks} does not divide the {gpus} GPUs of --nodes {args.nodes}",
            hint="change one of them, or give --dp",
        )
    return int(gpus // ranks)


def _check_nodes(args: argparse.Namespace, options: TrainOptions, machine: Machine) -> None:
    if args.nodes is None or args.search:
        return
    gpus = args.nodes * machine.gpus_per_node
    if options.gpus > gpus:
        raise PlanError(
            f"tp x pp x dp x cp = {options.gpus} ranks, but {args.nodes} nodes of {machine.name} "
            f"have {gpus} GPUs",
            hint=f"give --nodes {Place('', '', machine.gpus_per_node).nodes_of(options.gpus)}",
        )


def _document(args: argparse.Namespace, estimate: TrainEstimate) -> dict[str, Any]:
    price = price_of(estimate.machine, args.usd_per_gpu_h)
    budget = None
    if args.tokens:
        asked = BudgetOptions(
            tokens=args.tokens,
            mtbf_gpu_s=args.mtbf_gpu_h * 3600,
            checkpoint_bytes_per_s=args.checkpoint_gb_per_s * GB,
            restart_s=args.restart_s,
        )
        budget = budget_of(estimate, asked, price)
    document = train_document(estimate, price, budget)
    if args.scaling:
        document["scaling"] = _scaling(estimate)
    return document


def _scaling(estimate: TrainEstimate) -> list[dict[str, float]]:
    """Rates with more replicas of the same batch, and what is left of the ideal."""
    curve = scaling_curve(estimate)
    each = curve[0][1] / curve[0][0]
    return [
        {"gpus": gpus, "tokens_per_s": rate, "efficiency": rate / gpus / each}
        for gpus, rate in curve
    ]


def _refuse(args: argparse.Namespace, estimate: TrainEstimate, document: dict[str, Any]) -> int:
    """Say what does not fit, and the smallest plan that does."""
    found = smallest_fitting(estimate.model, estimate.options, estimate.machine)
    worst = estimate.worst
    problem = (
        f"does not fit: stage {worst.stage} needs {worst.device_bytes / GB:.1f} GB a GPU, "
        f"{estimate.machine.name} has {estimate.capacity_bytes / GB:.1f} GB"
    )
    document["problem"] = problem
    document["smallest_fit"] = _document(args, found) if found else None
    lines = [
        problem,
        f"  smallest plan that fits: {flags_of(found)}" if found else "  no plan fits",
    ]
    print_document(args, document, train_text(document) + "\n\n" + "\n".join(lines))
    return DOES_NOT_FIT


def flags_of(estimate: TrainEstimate) -> str:
    """Command-line options that say a plan again."""
    options = estimate.options
    words = [
        f"--nodes {estimate.nodes} --tp {options.tp} --pp {options.pp} --dp {options.dp}",
        f"--micro-batch {options.micro_batch} --global-batch {options.global_batch}",
        f"--seq {options.seq} --recompute {options.recompute.value} --zero {options.zero}",
    ]
    words += [f"--chunks {options.chunks}"] if options.chunks > 1 else []
    words += ["--sequence-parallel"] if options.sequence_parallel else []
    return " ".join(words)


def _search(
    args: argparse.Namespace, model: Transformer, base: TrainOptions, machine: Machine
) -> int:
    gpus = args.nodes * machine.gpus_per_node if args.nodes else base.gpus
    (found,) = sweep_plans(
        model, base, machine, [gpus], where=Where(args.on, args.workers), progress=progress_bar
    )
    if not found.tried:
        raise PlanError(
            f"no way to train {model.name} on {gpus} GPUs with --global-batch {base.global_batch}",
            hint="give a --global-batch that more parallel sizes divide, and --nodes",
        )
    if not found.best:
        return _refuse_search(args, model, base, machine, gpus)
    documents = [_document(args, estimate) for estimate in found.best]
    whole = {
        "fits": True,
        **documents[0],
        "flags": flags_of(found.best[0]),
        "tried": found.tried,
        "fitting": found.fitting,
        "runners_up": documents[1:],
    }
    lines = [f"{found.tried} plans on {gpus} GPUs, {found.fitting} fit; the quickest:"]
    lines += [f"  {e.step_s:9.4g} s  {e.mfu:6.1%} MFU  {flags_of(e)}" for e in found.best]
    page = _page(args, found.best[0], documents[0]) if args.html else None
    print_document(args, whole, train_text(documents[0]) + "\n\n" + "\n".join(lines), page)
    return FITS


def _refuse_search(
    args: argparse.Namespace, model: Transformer, base: TrainOptions, machine: Machine, gpus: int
) -> int:
    found = smallest_fitting(model, base, machine)
    problem = f"does not fit: no plan on {gpus} GPUs of {machine.name} holds {model.name}"
    document = {
        "fits": False,
        "problem": problem,
        "smallest_fit": _document(args, found) if found else None,
    }
    smallest = f"  smallest plan that fits: {flags_of(found)}" if found else "  no plan fits"
    print_document(args, document, f"{problem}\n{smallest}")
    return DOES_NOT_FIT


def _counts(text: str) -> tuple[int, ...]:
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 0:
        raise argparse.ArgumentTypeError(f"{text} is no list of counts such as 4,5,5,4")
    return counts
