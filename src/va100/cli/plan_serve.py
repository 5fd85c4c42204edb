"""``va100 plan serve``: latency, rate and memory of serving a language model."""

from __future__ import annotations

import argparse
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
    share,
)
from va100.errors import PlanError
from va100.plan.calibration import calibrate
from va100.plan.load import PoissonLoad, Request, read_trace
from va100.plan.models.files import read_model
from va100.plan.prices import price_of
from va100.plan.serve_load import play_load
from va100.plan.serve_report import (
    calibration_document,
    load_document,
    serve_document,
    serve_text,
)
from va100.plan.serve_search import least_share, smallest_serving
from va100.plan.serving import ServeEstimate, StepModel, estimate_serving
from va100.plan.serving_options import CACHE_BYTES, ENGINES, WEIGHTS, ServeOptions
from va100.plan.training import place_of
from va100.plan.workload import Transformer
from va100.units import GB

MOST_REQUESTS = 5_000_000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the kind of work to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="time to first token, time a token, memory and cost of serving a language model",
        description="Price serving a batch that comes at once; with --rate or --trace also play "
        "a load, event by event.",
    )
    parser.add_argument(
        "--model", required=True, metavar="FILE", type=Path, help="config.json or YAML"
    )
    add_machine_options(parser)
    _add_replica_options(parser)
    _add_memory_options(parser)
    _add_batch_options(parser)
    _add_load_options(parser)
    add_output_options(parser)


def _add_replica_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("replica")
    group.add_argument("--tp", type=count, default=1, metavar="T", help="tensor-parallel ranks")
    group.add_argument("--pp", type=count, default=1, metavar="P", help="pipeline stages")
    group.add_argument("--stage-layers", metavar="L,L,..", help="layers of each stage")
    group.add_argument(
        "--weights",
        "--quant",
        choices=sorted(WEIGHTS),
        default="bf16",
        help="how weights are held (default: %(default)s)",
    )
    group.add_argument(
        "--cache",
        "--kv-dtype",
        choices=sorted(CACHE_BYTES),
        default="bf16",
        help="how keys and values are held (default: %(default)s)",
    )
    group.add_argument(
        "--engine",
        choices=sorted(ENGINES),
        default="vllm",
        help="whose overheads are reckoned (default: %(default)s)",
    )


def _add_memory_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("memory and steps")
    group.add_argument(
        "--gpu-memory-utilization",
        type=share,
        default=0.9,
        metavar="SHARE",
        help="of the card that the server reserves (default: %(default)s)",
    )
    group.add_argument(
        "--max-context", type=count, metavar="N", help="longest sequence (default: the model's)"
    )
    group.add_argument(
        "--max-sequences",
        type=count,
        default=256,
        metavar="N",
        help="sequences of one step (default: %(default)s)",
    )
    group.add_argument(
        "--chunk",
        type=count,
        metavar="N",
        help="most tokens of one step (default: 8192; whole prompts for models that see)",
    )
    group.add_argument("--no-chunked-prefill", action="store_true", help="never cut a prompt")
    group.add_argument(
        "--no-graphs", action="store_true", help="decode without CUDA graphs: what they save"
    )


def _add_batch_options(parser: argparse.ArgumentParser) -> None:
    batch = parser.add_argument_group("batch")
    batch.add_argument(
        "--batch", type=count, default=1, metavar="B", help="sequences that come at once"
    )
    batch.add_argument(
        "--prompt",
        type=count,
        default=1024,
        metavar="N",
        help="tokens of each prompt (default: %(default)s)",
    )
    batch.add_argument(
        "--output",
        type=count,
        default=256,
        metavar="N",
        help="tokens of each answer (default: %(default)s)",
    )


def _add_load_options(parser: argparse.ArgumentParser) -> None:
    load = parser.add_argument_group("load")
    load.add_argument("--rate", type=positive, metavar="R", help="requests a second, at random")
    load.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="CSV of TIMESTAMP, ContextTokens, GeneratedTokens",
    )
    load.add_argument(
        "--duration",
        type=positive,
        default=60.0,
        metavar="S",
        help="seconds of --rate (default: %(default).0f)",
    )
    load.add_argument(
        "--variation",
        type=_variation,
        default=0.5,
        metavar="V",
        help="deviation of lengths over their mean (default: %(default)s)",
    )
    load.add_argument("--seed", type=int, default=1, metavar="N", help="of the chance numbers")
    load.add_argument("--replicas", type=count, default=1, metavar="N")
    load.add_argument(
        "--prefill-replicas",
        type=int,
        default=0,
        metavar="N",
        help="of those, ones that only fill prompts in",
    )
    load.add_argument(
        "--goal-ttft",
        type=positive,
        metavar="S",
        help="seconds to the first token that are good enough",
    )
    load.add_argument(
        "--goal-tpot", type=positive, metavar="S", help="seconds a token that are good enough"
    )
    load.add_argument(
        "--calibrate",
        type=Path,
        metavar="CSV",
        help="own measurements: phase,batch,tokens,context,measured_s",
    )


def run(args: argparse.Namespace) -> int:
    """Price what the command line asks; the result is the exit status."""
    model, machine = read_model(args.model), chosen_machine(args)
    options = _options(args, model)
    scales, found = (1.0, 1.0), None
    if args.calibrate is not None:
        found = calibrate(args.calibrate, StepModel(model, options, place_of(machine)))
        scales = (found.prefill_scale, found.decode_scale)
    estimate = estimate_serving(model, options, machine, scales)
    price = price_of(machine, args.usd_per_gpu_h)
    document = serve_document(estimate, price)
    if found is not None:
        document["calibration"] = calibration_document(found)
    if not estimate.fits:
        return _refuse(args, estimate, document)
    requests = _requests(args)
    if requests:
        load = play_load(
            estimate,
            requests,
            args.replicas,
            prefill_replicas=args.prefill_replicas,
            goals=_goals(args),
            scales=scales,
        )
        document["load"] = load_document(load, estimate, price)
    print_document(args, document, serve_text(document))
    return FITS


def _options(args: argparse.Namespace, model: Transformer) -> ServeOptions:
    sees = bool(model.extra_params)
    chunk = args.chunk or (0 if sees else 8192)
    return ServeOptions(
        tp=args.tp,
        pp=args.pp,
        stage_layers=_layers(args.stage_layers),
        batch=args.batch,
        prompt=args.prompt,
        output=args.output,
        weights=args.weights,
        cache=args.cache,
        memory_share=args.gpu_memory_utilization,
        chunk=0 if args.no_chunked_prefill else chunk,
        most_sequences=args.max_sequences,
        max_context=args.max_context or 0,
        engine=ENGINES[args.engine],
        graphs=not args.no_graphs,
    )


def _layers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise PlanError(
            f"--stage-layers {text} is no list of counts", hint="such as 20,20,20,20"
        ) from error


def _variation(text: str) -> float:
    return 0.0 if text in ("0", "0.0") else positive(text)


def _goals(args: argparse.Namespace) -> tuple[float, float] | None:
    if args.goal_ttft is None and args.goal_tpot is None:
        return None
    return args.goal_ttft or float("inf"), args.goal_tpot or float("inf")


def _requests(args: argparse.Namespace) -> list[Request]:
    if args.trace is not None:
        if args.rate is not None:
            raise PlanError("--rate and --trace are two loads", hint="give one of them")
        return read_trace(args.trace)
    if args.rate is None:
        return []
    if args.rate * args.duration > MOST_REQUESTS:
        raise PlanError(
            f"--rate {args.rate:g} for {args.duration:g} s is more than {MOST_REQUESTS} requests",
            hint="shorten --duration",
        )
    load = PoissonLoad(
        per_s=args.rate,
        duration_s=args.duration,
        prompt=args.prompt,
        output=args.output,
        variation=args.variation,
        seed=args.seed,
    )
    found = list(load.requests())
    if not found:
        raise PlanError("no request came", hint="raise --rate or --duration")
    return found


def _refuse(args: argparse.Namespace, estimate: ServeEstimate, document: dict[str, Any]) -> int:
    """Say what does not fit, and the smallest ways that do."""
    model, options, machine = estimate.model, estimate.options, estimate.machine
    document["problem"] = problem = _problem(estimate)
    least = least_share(model, options, machine)
    document["least_gpu_memory_utilization"] = least
    price = price_of(machine, args.usd_per_gpu_h)
    found = smallest_serving(model, options, machine)
    document["smallest_fits"] = [serve_document(way, price) for way in found]
    lines = [problem]
    if least is not None:
        lines.append(f"  it fits with --gpu-memory-utilization {least}")
    lines += [
        f"  fits: --tp {way.options.tp} --pp {way.options.pp} ({way.options.gpus} GPUs)"
        for way in found
    ]
    if not found and least is None:
        lines.append("  nothing like it fits this machine")
    # Times of what cannot run would only mislead.
    for name in ("ttft_s", "tpot_s", "tokens_per_s", "request_s", "prefill_tokens_per_s"):
        document[name] = None
    print_document(args, document, "\n".join(lines))
    return DOES_NOT_FIT


def _problem(estimate: ServeEstimate) -> str:
    options, machine = estimate.options, estimate.machine
    worst = max(estimate.memories, key=lambda memory: memory.fixed_bytes - memory.budget_bytes)
    weights = sum(m.weights_bytes for m in estimate.memories) * options.tp
    if not worst.fits:
        return (
            f"does not fit: {estimate.model.name} needs {weights / GB:.0f} GB for weights alone, "
            f"{worst.fixed_bytes / GB:.1f} GB on each GPU of stage {worst.stage} before one block "
            f"of cache; {options.memory_share:.0%} of a GPU of {machine.name} is "
            f"{worst.budget_bytes / GB:.1f} GB"
        )
    whole = options.prompt + options.output
    return (
        f"does not fit: {options.batch} sequences of {whole} tokens need "
        f"{estimate.kv_bytes / GB:.2f} GB of cache; it holds {estimate.cache_tokens} tokens, one "
        f"sequence up to {estimate.max_context}, {estimate.max_batch} of this length"
    )
