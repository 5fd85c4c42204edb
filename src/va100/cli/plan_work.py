"""``va100 plan vision``, ``recsys`` and ``science``: one batch, step or problem priced."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from va100.cli.plan_options import (
    DOES_NOT_FIT,
    FITS,
    add_machine_options,
    add_output_options,
    chosen_machine,
    count,
    print_document,
)
from va100.errors import PlanError
from va100.plan.compute import PROBLEMS, ProblemEstimate, estimate_problem
from va100.plan.machine import Machine
from va100.plan.models.files import read_model
from va100.plan.models.onnx_file import read_onnx
from va100.plan.networks import IMAGES, NETWORKS, Network, encoder_network
from va100.plan.prices import price_of
from va100.plan.program import estimate_program
from va100.plan.recommend import (
    RECOMMENDERS,
    RecommendEstimate,
    RecommendOptions,
    estimate_recommender,
    read_recommender,
)
from va100.plan.vision import PRECISIONS, RUNTIMES, VisionEstimate, VisionOptions, estimate_vision
from va100.units import GB, rate_text, time_text

Subparsers = argparse._SubParsersAction


def add_vision(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``vision``."""
    parser = subparsers.add_parser(
        "vision",
        help="images a second, latency and memory of networks of images",
        description="Price inference or a training step of a network of images, or of an encoder "
        "such as BERT from its config.json.",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="NAME",
        help=f"{', '.join(NETWORKS)}, a config.json, or an .onnx file",
    )
    add_machine_options(parser)
    parser.add_argument("--batch", type=count, default=1, metavar="B", help="images a GPU at once")
    parser.add_argument("--gpus", type=count, default=1, metavar="N", help="data-parallel GPUs")
    parser.add_argument("--image", type=count, metavar="N", help="pixels a side, or tokens")
    parser.add_argument("--train", action="store_true", help="a training step, not inference")
    parser.add_argument("--precision", choices=sorted(PRECISIONS), default="fp16")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="framework")
    parser.add_argument("--graphs", action="store_true", help="start kernels by a CUDA graph")
    parser.add_argument("--sparse", action="store_true", help="2:4 sparse linear layers")
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME=N",
        help="a named dimension of an ONNX file; again for more",
    )
    add_output_options(parser)


def run_vision(args: argparse.Namespace) -> int:
    """Price a network; the result is the exit status."""
    machine = chosen_machine(args)
    if args.model.endswith(".onnx"):
        return _run_onnx(args, machine)
    network = _network(args)
    options = VisionOptions(
        batch=args.batch,
        precision=args.precision,
        training=args.train,
        gpus=args.gpus,
        runtime=RUNTIMES[args.runtime],
        graphs=args.graphs or args.runtime == "tensorrt",
        sparse=args.sparse,
    )
    found = estimate_vision(network, options, machine)
    document = vision_document(found, args.usd_per_gpu_h)
    if not found.fits:
        document["problem"] = _too_large(found.peak_bytes, machine)
        document["largest_batch"] = _largest_batch(network, options, machine)
    _print(args, document)
    return FITS if found.fits else DOES_NOT_FIT


def _run_onnx(args: argparse.Namespace, machine: Machine) -> int:
    """Price a file's operators as they stand."""
    if args.train or args.gpus > 1:
        raise PlanError("an ONNX file is priced as inference on one GPU", hint="drop the options")
    sizes = {"batch": args.batch, "batch_size": args.batch, "N": args.batch}
    program = read_onnx(Path(args.model), {**sizes, **dict(map(_size, args.dimension))})
    found = estimate_program(program, machine, graphs=args.graphs)
    document = {
        "fits": found.fits,
        "latency_s": found.time_s,
        "latency_s_band": list(found.band),
        "launch_s": found.launch_s,
        "flop_per_s_per_gpu": program.flop_count / found.time_s,
        "peak_bytes_per_gpu": found.peak_bytes,
        "capacity_bytes_per_gpu": machine.memory_bytes,
        "energy_j": found.energy_j,
        "operators_s": dict(found.by_operator),
        "model": {"name": program.name, "params": program.params},
        "machine": machine.name,
        "basis": _basis(machine, 0.3),
    }
    if not found.fits:
        document["problem"] = _too_large(found.peak_bytes, machine)
    _print(args, document)
    return FITS if found.fits else DOES_NOT_FIT


def _network(args: argparse.Namespace) -> Network:
    if args.model in NETWORKS:
        image = args.image or IMAGES[args.model]
        if image % 32 and args.model not in ("ssd300", "vit-h-14"):
            raise PlanError(f"--image {image} is no multiple of 32", hint="such as 224, 512, 1024")
        return NETWORKS[args.model](image)
    path = Path(args.model)
    if not path.exists():
        raise PlanError(
            f"no network {args.model!r}", hint=f"{', '.join(NETWORKS)}, or a config.json"
        )
    return encoder_network(read_model(path), args.image or 384)


def _largest_batch(network: Network, options: VisionOptions, machine: Machine) -> int:
    low, high = 0, options.batch
    while low < high:
        middle = (low + high + 1) // 2
        asked = VisionOptions(
            **{**_fields(options), "batch": middle}  # type: ignore[arg-type]
        )
        if estimate_vision(network, asked, machine).fits:
            low = middle
        else:
            high = middle - 1
    return low


def _fields(options: VisionOptions) -> dict[str, object]:
    return {name: getattr(options, name) for name in type(options).__dataclass_fields__}


def vision_document(found: VisionEstimate, usd_per_gpu_h: float | None = None) -> dict[str, Any]:
    """Everything of a network's price, in base units."""
    options = found.options
    price = price_of(found.machine, usd_per_gpu_h)
    usd = None
    if price is not None:
        usd = price.usd_per_gpu_h * options.gpus / 3600 / found.per_s * 1e6
    return {
        "fits": found.fits,
        "latency_s": found.latency_s,
        "latency_s_band": list(found.band),
        "per_s": found.per_s,
        "unit": found.network.unit,
        "launch_s": found.launch_s,
        "exchange_s": found.exchange_s,
        "flop_per_s_per_gpu": found.flop_per_s_per_gpu,
        "mfu": found.peak_share,
        "peak_bytes_per_gpu": found.peak_bytes,
        "peak_parts_bytes": dict(found.parts_bytes),
        "capacity_bytes_per_gpu": found.machine.memory_bytes,
        "energy_j": found.energy_j,
        "energy_j_per_unit": found.energy_j / options.batch / options.gpus,
        "mean_power_w_per_gpu": found.power_w,
        "cost_usd_per_million": usd,
        "model": {"name": found.network.name, "params": found.network.params},
        "plan": {
            "batch": options.batch, "gpus": options.gpus, "train": options.training,
            "precision": options.precision, "runtime": options.runtime.name,
            "graphs": options.graphs, "sparse": options.sparse,
        },
        "machine": found.machine.name,
        "basis": _basis(found.machine, options.runtime.within_ratio),
    }  # fmt: skip


def _basis(machine: Machine, within: float) -> dict[str, str]:
    a100 = machine.chip.startswith("a100")
    return {
        "times": "measured-calibrated" if a100 else "model",
        "band": f"published runs on A100s came within {within:.0%}",
        "memory": "model",
        "energy": "model",
    }


def _too_large(peak_bytes: int, machine: Machine) -> str:
    return (
        f"does not fit: needs {peak_bytes / GB:.1f} GB a GPU, {machine.name} has "
        f"{machine.memory_bytes / GB:.1f} GB"
    )


def add_recsys(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``recsys``."""
    parser = subparsers.add_parser(
        "recsys",
        help="records a second of recommenders, tables placed over GPUs",
        description="Price a batch or training step of a recommender; tables go to GPUs whole, "
        "and by columns where one GPU does not hold them.",
    )
    parser.add_argument(
        "--model", required=True, metavar="NAME", help=f"{', '.join(RECOMMENDERS)}, or YAML"
    )
    add_machine_options(parser)
    parser.add_argument("--batch", type=count, default=65536, metavar="B", help="records, all GPUs")
    parser.add_argument("--gpus", type=count, default=1, metavar="N")
    parser.add_argument("--train", action="store_true", help="a training step, not inference")
    parser.add_argument("--precision", choices=("fp16", "tf32", "fp32"), default="tf32")
    parser.add_argument("--table-bytes", type=int, choices=(2, 4), default=4, help="of a value")
    add_output_options(parser)


def run_recsys(args: argparse.Namespace) -> int:
    """Price a recommender; the result is the exit status."""
    machine = chosen_machine(args)
    options = RecommendOptions(
        batch=args.batch,
        gpus=args.gpus,
        training=args.train,
        precision=args.precision,
        table_bytes=args.table_bytes,
    )
    found = estimate_recommender(read_recommender(args.model), options, machine)
    document = _recsys_document(found, args.usd_per_gpu_h)
    if not found.fits:
        document["problem"] = (
            f"does not fit: tables of {found.model.table_params * options.table_bytes / GB:.0f} GB "
            f"on {options.gpus} GPUs; fewest that hold them: {found.smallest_gpus or 'none to 256'}"
        )
    _print(args, document)
    return FITS if found.fits else DOES_NOT_FIT


def _recsys_document(found: RecommendEstimate, usd_per_gpu_h: float | None) -> dict[str, Any]:
    options = found.options
    price = price_of(found.machine, usd_per_gpu_h)
    usd = None
    if price is not None:
        usd = price.usd_per_gpu_h * options.gpus / 3600 / found.records_per_s * 1e6
    return {
        "fits": found.fits,
        "step_s": found.step_s if found.fits else None,
        "step_s_band": list(found.band) if found.fits else None,
        "records_per_s": found.records_per_s if found.fits else None,
        "step_parts_s": dict(found.parts_s),
        "peak_bytes_per_gpu": found.peak_bytes,
        "peak_parts_bytes": dict(found.parts_bytes),
        "capacity_bytes_per_gpu": found.machine.memory_bytes,
        "placement": [asdict(shard) for shard in found.shards],
        "smallest_gpus": found.smallest_gpus,
        "energy_j": found.energy_j,
        "cost_usd_per_million": usd,
        "model": {
            "name": found.model.name,
            "table_params": found.model.table_params,
            "dense_params": found.model.dense_params,
        },
        "plan": asdict(options),
        "machine": found.machine.name,
        "basis": _basis(found.machine, 0.35),
    }


def add_science(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``science``."""
    parser = subparsers.add_parser(
        "science",
        help="stencils, FFT, molecular dynamics, HPL, structures; sort, join, group-by",
        description="Price a problem of science or analytics, on one GPU or spread over several.",
        epilog="Kinds and their sizes: "
        + "; ".join(
            f"{kind} ({', '.join(f'{n}={v}' for n, v in problem.sizes.items())})"
            for kind, problem in PROBLEMS.items()
        ),
    )
    parser.add_argument("--kind", required=True, choices=sorted(PROBLEMS))
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="a size; again for more"
    )
    add_machine_options(parser)
    parser.add_argument("--gpus", type=count, default=1, metavar="N")
    parser.add_argument("--dtype", choices=("fp16", "fp32", "fp64"), help="default: by the kind")
    add_output_options(parser)


def run_science(args: argparse.Namespace) -> int:
    """Price a problem; the result is the exit status."""
    machine = chosen_machine(args)
    sizes = dict(_size(text) for text in args.size)
    found = estimate_problem(args.kind, sizes, machine, gpus=args.gpus, dtype=args.dtype or "")
    document = _science_document(found, args.usd_per_gpu_h)
    if not found.fits:
        document["problem"] = (
            f"{_too_large(found.peak_bytes, machine)}; fewest GPUs: {found.smallest_gpus}"
        )
    _print(args, document)
    return FITS if found.fits else DOES_NOT_FIT


def _size(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not equals or not 1 <= number < 1e18 or number != int(number):
        raise PlanError(f"--size {text} is no NAME=N", hint="such as points=134217728 or rows=1e9")
    return name, int(number)


def _science_document(found: ProblemEstimate, usd_per_gpu_h: float | None) -> dict[str, Any]:
    price = price_of(found.machine, usd_per_gpu_h)
    usd = None if price is None else price.usd_per_gpu_h * found.gpus * found.time_s / 3600
    return {
        "fits": found.fits,
        "time_s": found.time_s,
        "time_s_band": list(found.band),
        "compute_s": found.compute_s,
        "exchange_s": found.exchange_s,
        "per_s": found.per_s,
        "unit": found.unit,
        "flop_per_s": found.flop_per_s,
        "bound": found.bound,
        "peak_bytes_per_gpu": found.peak_bytes,
        "capacity_bytes_per_gpu": found.machine.memory_bytes,
        "smallest_gpus": found.smallest_gpus,
        "energy_j": found.energy_j,
        "cost_usd": usd,
        "kind": found.kind,
        "sizes": dict(found.sizes),
        "dtype": found.dtype,
        "gpus": found.gpus,
        "machine": found.machine.name,
        "notes": list(found.notes),
        "basis": {"times": "model", "memory": "exact from sizes", "energy": "model"},
    }


def _print(args: argparse.Namespace, document: dict[str, Any]) -> None:
    print_document(args, document, work_text(document))


def work_text(document: Mapping[str, Any]) -> str:
    """A short answer for people, of whichever kind."""
    lines = [document["problem"]] if "problem" in document else []
    title = document.get("model", {}).get("name") or document.get("kind", "")
    lines.append(f"{title} on {document['machine']}")
    for name in ("latency_s", "step_s", "time_s"):
        if document.get(name) is not None:
            low, high = document[f"{name}_band"]
            said = f"{time_text(document[name])}  ({time_text(low)} to {time_text(high)})"
            lines.append(f"  {name.removesuffix('_s'):<12}{said}")
    for name in ("per_s", "records_per_s"):
        if document.get(name) is not None:
            unit = document.get("unit", "records")
            lines.append(f"  {'rate':<12}{rate_text(document[name], f' {unit}/s')}")
    lines.append(
        f"  {'memory':<12}{document['peak_bytes_per_gpu'] / GB:.2f} GB of "
        f"{document['capacity_bytes_per_gpu'] / GB:.2f} GB a GPU"
    )
    lines.append(f"  {'energy':<12}{document['energy_j']:.4g} J")
    for name, value in document.get("step_parts_s", {}).items():
        lines.append(f"    {name:<12}{time_text(value)}")
    lines.append(f"  {'basis':<12}{document['basis']['times']}")
    return "\n".join(lines)
