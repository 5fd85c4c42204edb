"""Networks of images on GPUs: latency, images a second, memory, energy; inference and training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from va100.errors import PlanError
from va100.perf.operators import conv
from va100.plan.kernels import NOTHING, Core, Cost, Gemm, flash, product, stream
from va100.plan.machine import Machine
from va100.plan.networks import Network, Operator
from va100.plan.training import longer_s, place_of
from va100.units import MIB, MS, US


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Software that runs a network.

    ``passes_forward`` and ``passes_backward`` are times that a normalisation and activation go
    through memory; 0 where they are taken into the convolution before.
    """

    name: str
    text: str
    product_ratio: float
    conv_ratio: float
    stream_ratio: float
    passes_forward: float
    passes_backward: float
    score_passes: float
    """Times that scores go through memory without flash attention: scale, mask, softmax."""
    wide_ratio: float
    """Of convolutions of 32-bit values: their layout is turned round each of them."""
    narrow_ratio: float
    """Of convolutions of 8-bit values."""
    tf32_ratio: float
    """Of products in TF32."""
    host_kernel_s: float
    step_s: float
    within_ratio: float


RUNTIMES: Final[Mapping[str, Runtime]] = MappingProxyType(
    {
        runtime.name: runtime
        for runtime in (
            Runtime(
                name="framework",
                text="PyTorch or TensorFlow with mixed precision, cuDNN, channels last",
                product_ratio=1.05,
                conv_ratio=1.5,
                stream_ratio=1.0,
                passes_forward=2.5,
                passes_backward=4.0,
                score_passes=3.0,
                wide_ratio=1.45,
                narrow_ratio=1.0,
                tf32_ratio=1.2,
                host_kernel_s=26 * US,
                step_s=2 * MS,
                within_ratio=0.3,
            ),
            Runtime(
                name="compiled",
                text="PyTorch with torch.compile: element-wise work fused, one CUDA graph",
                product_ratio=1.0,
                conv_ratio=1.3,
                stream_ratio=0.5,
                passes_forward=2.0,
                passes_backward=3.0,
                score_passes=1.0,
                wide_ratio=1.2,
                narrow_ratio=1.0,
                tf32_ratio=1.2,
                host_kernel_s=4 * US,
                step_s=0.3 * MS,
                within_ratio=0.3,
            ),
            Runtime(
                name="tensorrt",
                text="TensorRT: fused, one CUDA graph",
                product_ratio=0.9,
                conv_ratio=0.92,
                stream_ratio=1.0,
                passes_forward=0.0,
                passes_backward=0.0,
                score_passes=1.0,
                wide_ratio=1.0,
                narrow_ratio=0.66,
                tf32_ratio=1.0,
                host_kernel_s=0.0,
                step_s=0.05 * MS,
                within_ratio=0.3,
            ),
        )
    }
)
PRECISIONS: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {
        "fp16": ("fp16", 2),
        "bf16": ("bf16", 2),
        "tf32": ("tf32", 4),
        "fp32": ("fp32", 4),
        "int8": ("int8", 1),
    }
)
"""Type of products and bytes of a value; fp16 and bf16 training is mixed."""
CONTEXT_BYTES: Final = 700 * MIB
"""CUDA, cuDNN and their workspaces; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionOptions:
    """How a network is run on each GPU."""

    batch: int = 1
    precision: str = "fp16"
    training: bool = False
    gpus: int = 1
    runtime: Runtime = RUNTIMES["framework"]
    graphs: bool = False
    """Kernels are started by one CUDA graph."""
    sparse: bool = False
    """Weights of linear layers are 2:4 sparse (inference)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionEstimate:
    """What a network takes."""

    network: Network
    options: VisionOptions
    machine: Machine
    fits: bool
    peak_bytes: int
    parts_bytes: Mapping[str, int]
    latency_s: float
    """One batch: a step of training, or all passes of an inference."""
    band: tuple[float, float]
    per_s: float
    """Results of all GPUs together."""
    launch_s: float
    """Part of the latency that starting kernels adds."""
    exchange_s: float
    flop_per_s_per_gpu: float
    peak_share: float
    energy_j: float
    power_w: float


def estimate_vision(network: Network, options: VisionOptions, machine: Machine) -> VisionEstimate:
    """Price a network.

    Raises
    ------
    PlanError
        Training in a type that gradients do not survive, a precision the GPU lacks.
    """
    _check(network, options)
    forward, backward = _passes(network, options, machine)
    runtime = options.runtime
    whole = forward + backward
    host_s = 0.0 if options.graphs else whole.kernels * runtime.host_kernel_s
    chip_s = whole.time_s
    step_s = longer_s(chip_s, host_s, 6.0)
    exchange_s, optimizer = _update(network, options, machine, backward)
    passes = 1 if options.training else network.passes
    latency_s = passes * step_s + exchange_s + optimizer.time_s + runtime.step_s
    if runtime.passes_forward:
        latency_s += options.batch * network.host_image_s + network.host_batch_s
    parts = _memory(network, options)
    work = network.flop_count * options.batch * passes * (3 if options.training else 1)
    busy_j = (whole.energy_j + optimizer.energy_j / max(passes, 1)) * passes
    waiting_s = max(latency_s - passes * chip_s - optimizer.time_s, 0.0)
    energy = (busy_j + waiting_s * place_of(machine).waiting_w) * options.gpus
    within = runtime.within_ratio
    return VisionEstimate(
        network=network,
        options=options,
        machine=machine,
        fits=sum(parts.values()) <= machine.memory_bytes,
        peak_bytes=sum(parts.values()),
        parts_bytes=parts,
        latency_s=latency_s,
        band=(latency_s / (1 + within), latency_s / (1 - within)),
        per_s=options.batch * options.gpus / latency_s,
        launch_s=passes * (step_s - chip_s),
        exchange_s=exchange_s,
        flop_per_s_per_gpu=work / latency_s,
        peak_share=work / latency_s / machine.tensor_flop_per_s,
        energy_j=energy,
        power_w=energy / latency_s / options.gpus,
    )


def _check(network: Network, options: VisionOptions) -> None:
    if options.training and options.precision == "int8":
        raise PlanError("training in int8", hint="--precision fp16, bf16, tf32 or fp32")
    if options.training and options.runtime.name == "tensorrt":
        raise PlanError("TensorRT does not train", hint="--runtime framework")
    if options.training and options.sparse:
        raise PlanError("--sparse is for inference", hint="drop --sparse or --train")
    if options.training and network.passes > 1 and not network.params:
        raise PlanError(f"{network.name} has no parameters to train", hint="drop --train")


def _passes(network: Network, options: VisionOptions, machine: Machine) -> tuple[Cost, Cost]:
    forward = backward = NOTHING
    for operator in network.operators:
        ahead = _forward(operator, options, machine.chip)
        forward = forward + ahead
        if options.training:
            # Gradients of inputs and of weights: each as much work as the pass ahead.
            factor = 1.0 if operator.kind == "stream" else 2.0
            backward = backward + ahead.scaled(count=factor)
        if operator.kind == "conv" and options.runtime.passes_forward:
            forward = forward + _norm(operator, options, machine.chip, backward=False)
            if options.training:
                backward = backward + _norm(operator, options, machine.chip, backward=True)
    return forward, backward


def _forward(operator: Operator, options: VisionOptions, chip: str) -> Cost:
    return _kept_forward(
        operator, options.batch, options.precision, options.runtime, chip, options.sparse
    )


@lru_cache(maxsize=32768)
def _kept_forward(
    operator: Operator, batch: int, precision: str, runtime: Runtime, chip: str, sparse: bool  # noqa: FBT001
) -> Cost:  # fmt: skip
    dtype, each = PRECISIONS[precision]
    if operator.kind == "stream":
        moved = batch * operator.elements * each
        if not runtime.passes_forward:
            return stream(moved, moved, chip).scaled(0.5)
        return stream(moved, moved, chip).scaled(runtime.stream_ratio)
    if operator.kind == "attention":
        core = _attention(operator, batch, precision, chip, runtime.score_passes)
        return core.scaled(runtime.product_ratio)
    if operator.kind == "linear" or operator.depth > 1:
        ratio = runtime.product_ratio * (
            runtime.tf32_ratio if dtype == "tf32" and operator.kind == "linear" else 1.0
        )
        found = _product(operator, batch, dtype, chip, sparse=sparse).scaled(ratio)
        return replace(found, kernels=operator.kernels)
    try:
        convolved = conv.estimate(
            batch,
            operator.cin,
            operator.cout,
            operator.height,
            operator.width,
            ksize=operator.ksize,
            stride=operator.stride,
            pad=0 if operator.ksize == operator.stride else None,
            groups=operator.groups,
            dtype=dtype,
            chip=chip,
        )
    except ValueError as error:
        raise PlanError(str(error), hint="choose another precision or machine") from error
    by_width = {4: runtime.wide_ratio, 1: runtime.narrow_ratio}
    ratio = runtime.conv_ratio * by_width.get(each, 1.0)
    return Cost(convolved.time_s, convolved.energy_j, operator.flop_count * batch, 1).scaled(ratio)


def _product(operator: Operator, batch: int, dtype: str, chip: str, *, sparse: bool) -> Cost:
    if operator.kind == "linear":
        rows = batch * operator.tokens
        shape = Gemm(rows, operator.cout, operator.cin, 1, dtype, chip, sparse)
        return product(shape)
    taps = operator.ksize**3 * operator.cin
    rows = batch * operator.out_elements // operator.cout
    return product(Gemm(rows, operator.cout, taps, 1, dtype, chip))


def _attention(operator: Operator, batch: int, precision: str, chip: str, passes: float) -> Cost:
    head = operator.cout // operator.heads
    dtype = "bf16" if precision == "bf16" else "fp16"
    if precision in ("fp32", "tf32"):
        rows, keys, many = operator.tokens, operator.keys, batch * operator.heads
        scores = product(Gemm(rows, keys, head, many, precision, chip))
        values = product(Gemm(rows, head, keys, many, precision, chip))
        moved = rows * keys * many * 4
        return scores + stream(moved, moved, chip).scaled(count=passes) + values
    return flash(
        Core(batch, operator.tokens, max(operator.keys, operator.tokens), operator.heads,
             operator.heads, head, causal=False, dtype=dtype, chip=chip)
    ).scaled(min(operator.keys / operator.tokens, 1.0))  # fmt: skip


def _norm(operator: Operator, options: VisionOptions, chip: str, *, backward: bool) -> Cost:
    """Normalisation and activation after a convolution."""
    runtime = options.runtime
    passes = runtime.passes_backward if backward else runtime.passes_forward
    if not options.training:
        passes = min(passes, 2.0)
    each = PRECISIONS[options.precision][1]
    moved = options.batch * operator.out_elements * each
    return stream(int(moved * (passes - 1)), moved, chip).scaled(runtime.stream_ratio)


def _update(
    network: Network, options: VisionOptions, machine: Machine, backward: Cost
) -> tuple[float, Cost]:
    """Exchange of gradients that the backward pass does not hide, and the optimiser."""
    if not options.training:
        return 0.0, NOTHING
    params = network.params
    optimizer = stream(params * 12, params * 10, machine.chip)
    if options.gpus == 1:
        return 0.0, optimizer
    place = place_of(machine)
    nodes = place.nodes_of(options.gpus)
    each = 2 if options.precision in ("fp16", "bf16") else 4
    cost = place.exchange("all_reduce", params * each, options.gpus, nodes)
    # Gradients leave in buckets as they come; what comes after the last layer's is seen.
    hidden_s = min(0.8 * cost.time_s, 0.8 * backward.time_s)
    return cost.time_s - hidden_s, optimizer


def _memory(network: Network, options: VisionOptions) -> dict[str, int]:
    each = PRECISIONS[options.precision][1]
    values = [operator.out_elements for operator in network.operators]
    if not options.training:
        held = 3 * max(values) * options.batch * each
        return {
            "weights": network.params * each,
            "activations": held,
            "context": CONTEXT_BYTES,
        }
    mixed = options.precision in ("fp16", "bf16")
    kept = sum(
        operator.out_elements * (2 if operator.kind == "conv" and operator.params else 1)
        for operator in network.operators
    )
    return {
        "weights": network.params * (6 if mixed else 4),
        "gradients": network.params * 4,
        "optimizer": network.params * 4,
        "activations": kept * options.batch * each,
        "context": CONTEXT_BYTES,
    }
