"""Time, energy and memory of one training step: the planner's answer to ``plan train``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from va100.plan.kernels import NOTHING, Cost, stream
from va100.plan.layers import (
    Place,
    Shape,
    embedding_passes,
    layer_passes,
    output_passes,
    shape_of,
)
from va100.plan.machine import Machine
from va100.plan.memory import StageMemory, padded_vocab, stage_memories, stage_params, worst_stage
from va100.plan.pipeline import StageTime, bubble_ratio, pipeline_s
from va100.plan.stacks import Stack
from va100.plan.training_options import Recompute, TrainOptions, check_options
from va100.plan.workload import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Seconds of a step by what they are spent on; they add up to the step."""

    compute_s: float
    """Kernels of the slowest stage's micro-batches."""
    host_s: float
    """What issuing those kernels adds where it is slower than they are."""
    tensor_parallel_s: float
    pipeline_transfer_s: float
    bubble_s: float
    gradients_s: float
    """Exchange among data-parallel ranks that nothing hides."""
    optimizer_s: float
    fixed_s: float

    @property
    def total_s(self) -> float:
        """The step."""
        return (
            self.compute_s
            + self.host_s
            + self.tensor_parallel_s
            + self.pipeline_transfer_s
            + self.bubble_s
            + self.gradients_s
            + self.optimizer_s
            + self.fixed_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainEstimate:
    """What one way of training takes."""

    model: Transformer
    options: TrainOptions
    machine: Machine
    nodes: int
    fits: bool
    memories: tuple[StageMemory, ...]
    step_s: float
    band: tuple[float, float]
    parts: StepParts
    stages: tuple[StageTime, ...]
    bubble_ratio: float
    tokens_per_s_per_gpu: float
    mfu: float
    hfu: float
    model_flop_count: float
    hardware_flop_count: float
    energy_j: float
    power_w: float
    """Mean of one GPU."""

    @property
    def worst(self) -> StageMemory:
        """Heaviest stage."""
        return worst_stage(self.memories)

    @property
    def capacity_bytes(self) -> int:
        """What one GPU has."""
        return self.machine.memory_bytes


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage's micro-batch on one rank."""

    forward: Cost
    backward: Cost
    forward_comm: Cost
    backward_comm: Cost
    hop_s: float
    checkpoint_s: float
    stack: Stack

    def pass_s(self, *, backward: bool) -> float:
        """Seconds of one pass: the kernels, or issuing them where that is slower."""
        cost, comm = self._pair(backward=backward)
        chip_s, host_s = cost.time_s + comm.time_s, self.host_s(backward=backward)
        chip_s += self.checkpoint_s * backward
        return self.hop_s + longer_s(chip_s, host_s, self.stack.overlap_exponent)

    def host_s(self, *, backward: bool) -> float:
        """Seconds to issue a pass's kernels."""
        cost, comm = self._pair(backward=backward)
        stack = self.stack
        return cost.kernels * stack.host_kernel_s + comm.kernels * stack.host_collective_s

    def _pair(self, *, backward: bool) -> tuple[Cost, Cost]:
        if backward:
            return self.backward, self.backward_comm
        return self.forward, self.forward_comm

    @property
    def time(self) -> StageTime:
        """Both passes."""
        return StageTime(self.pass_s(backward=False), self.pass_s(backward=True))


def estimate_training(
    model: Transformer, options: TrainOptions, machine: Machine, nodes: int = 0
) -> TrainEstimate:
    """Price one training step.

    Raises
    ------
    PlanError
        No trainer could run this choice; whether it fits is in the answer instead.
    """
    check_options(model, options)
    memories = stage_memories(model, options)
    place = place_of(machine)
    count = nodes or place.nodes_of(options.gpus)
    stages = _stages(model, options, place)
    slower = straggling(options)
    times = tuple(
        StageTime(stage.time.forward_s * slower, stage.time.backward_s * slower) for stage in stages
    )
    parts = _parts(model, options, place, stages, times)
    step_s = parts.total_s
    within = options.stack.within_ratio
    model_flop = model_flop_count(model, options.global_batch, options.seq)
    hardware_flop = model_flop * recompute_ratio(model, options)
    energy_j = _energy_j(options, machine, stages, step_s)
    peak = machine.tensor_flop_per_s * options.gpus
    return TrainEstimate(
        model=model,
        options=options,
        machine=machine,
        nodes=count,
        fits=worst_stage(memories).device_bytes <= machine.memory_bytes,
        memories=memories,
        step_s=step_s,
        band=(step_s / (1 + within), step_s / (1 - within)),
        parts=parts,
        stages=times,
        bubble_ratio=bubble_ratio(times, options.micro_batches, options.chunks),
        tokens_per_s_per_gpu=options.global_batch * options.seq / step_s / options.gpus,
        mfu=model_flop / step_s / peak,
        hfu=hardware_flop / step_s / peak,
        model_flop_count=model_flop,
        hardware_flop_count=hardware_flop,
        energy_j=energy_j,
        power_w=energy_j / step_s / options.gpus,
    )


def straggling(options: TrainOptions) -> float:
    """Time of the slowest of all GPUs over that of one: they wait for each other."""
    if options.gpus == 1:
        return 1.0
    return 1.0 + options.stack.straggler_ratio * math.sqrt(2 * math.log(options.gpus))


def place_of(machine: Machine) -> Place:
    """Where ranks compute, of a machine."""
    waiting_w = max(machine.idle_w, WAITING_SHARE * machine.power_w)
    return Place(
        machine.chip,
        machine.node,
        machine.gpus_per_node,
        machine.link_ratio,
        waiting_w,
        machine.network,
    )


def longer_s(first_s: float, second_s: float, exponent: float) -> float:
    """Time of two things that overlap, in a norm: a little more than the longer."""
    longest, shortest = max(first_s, second_s), min(first_s, second_s)
    if shortest <= 0.0:
        return longest
    return float(longest * (1.0 + (shortest / longest) ** exponent) ** (1.0 / exponent))


def model_flop_count(model: Transformer, batch: int, seq: int) -> float:
    """Multiply-adds times two of one step without recomputation.

    Matrices of every token, the logits, and the attention's two products, each once forward and
    twice backward; a causal mask is not subtracted, as Megatron's formula counts.
    """
    tokens = batch * seq
    embedding = model.embedding_params + (0 if model.tied else model.vocab * model.hidden)
    matrices = model.active_params - embedding - model.extra_params
    if not model.tied:
        matrices = matrices - 0
    width = model.heads * model.head_dim
    if model.latent is not None:
        head = model.latent
        width = model.heads * (head.nope_dim + head.rope_dim + head.v_dim) // 2
    scores = 2 * model.layers * width * seq
    return 6.0 * tokens * (matrices + model.vocab * model.hidden + scores)


def recompute_ratio(model: Transformer, options: TrainOptions) -> float:
    """Work done over work needed."""
    if options.recompute is Recompute.NONE:
        return 1.0
    scores = 2 * model.layers * model.heads * model.head_dim * options.seq
    logits = model.vocab * model.hidden
    whole = model_flop_count(model, 1, options.seq) / (6.0 * options.seq)
    again = whole - logits if options.recompute is Recompute.FULL else scores
    return (3 * whole + again) / (3 * whole)


def _stages(model: Transformer, options: TrainOptions, place: Place) -> list[_Stage]:
    shape = shape_of(options, place)
    hop_s = _hop_s(model, options, place)
    kept: dict[tuple[int, int, bool, bool], _Stage] = {}
    stages = []
    start = 0
    for stage, count in enumerate(options.layers_of_stages(model.layers)):
        routed = 0
        if model.experts is not None:
            routed = sum(model.has_experts(index) for index in range(start, start + count))
        start += count
        key = (count, routed, stage == 0, stage == options.pp - 1)
        if key not in kept:
            kept[key] = _stage(model, options, shape, key, hop_s)
        stages.append(kept[key])
    return stages


def _stage(
    model: Transformer,
    options: TrainOptions,
    shape: Shape,
    key: tuple[int, int, bool, bool],
    hop_s: float,
) -> _Stage:
    """A stage of so many layers, so many of them with experts, that is first, or last, or not."""
    count, routed, first, last = key
    passes = [(layer_passes(model, shape), count - routed)]
    if routed:
        passes.append((layer_passes(model, shape, has_experts=True), routed))
    if first:
        passes.append((embedding_passes(model, shape), 1))
    if last:
        passes.append((output_passes(model, shape), 1))
    sums = [NOTHING] * 4
    for part, times in passes:
        totals = (part.forward_totals, part.backward_totals)
        each = [cost for both in totals for cost in (both.computes, both.communicates)]
        sums = [a + b.scaled(count=times) for a, b in zip(sums, each, strict=True)]
    again_s = options.stack.checkpoint_s if options.recompute is Recompute.FULL else 0.0
    return _Stage(sums[0], sums[2], sums[1], sums[3], hop_s, count * again_s, options.stack)


def _hop_s(model: Transformer, options: TrainOptions, place: Place) -> float:
    """Sending activations to the next stage, once a pass and chunk."""
    if options.pp == 1:
        return 0.0
    tokens = options.micro_batch * options.seq // options.cp
    whole = tokens * model.hidden * options.format.activation_bytes
    far = options.tp * options.cp * options.dp >= place.gpus_per_node
    # Tensor-parallel ranks hold the same: each sends its part, and they gather the rest.
    cost = place.exchange("send_recv", whole // options.tp, 2, 2 if far else 1)
    if options.tp > 1 and not options.sequence_parallel:
        nodes = place.nodes_of(options.tp)
        cost = cost + place.exchange("all_gather", whole, options.tp, nodes)
    return cost.time_s * options.chunks


def _parts(
    model: Transformer,
    options: TrainOptions,
    place: Place,
    stages: list[_Stage],
    times: tuple[StageTime, ...],
) -> StepParts:
    slowest = max(range(len(stages)), key=lambda index: times[index].both_s)
    stage, count = stages[slowest], options.micro_batches
    compute = stage.forward.time_s + stage.backward.time_s
    comm = stage.forward_comm.time_s + stage.backward_comm.time_s
    hops = 2 * stage.hop_s
    whole = pipeline_s(times, count, options.chunks)
    gradients, optimizer = _after_passes(model, options, place, stage.backward.time_s * count)
    return StepParts(
        compute_s=count * compute,
        host_s=count * max(times[slowest].both_s - compute - comm - hops, 0.0),
        tensor_parallel_s=count * comm,
        pipeline_transfer_s=count * hops,
        bubble_s=whole - count * times[slowest].both_s,
        gradients_s=gradients,
        optimizer_s=optimizer,
        fixed_s=options.stack.step_s,
    )


def _after_passes(
    model: Transformer, options: TrainOptions, place: Place, backward_s: float
) -> tuple[float, float]:
    """Seconds of the exchange that stays visible and of the optimiser, in the heaviest stage."""
    layers = options.layers_of_stages(model.layers)
    starts = [sum(layers[:stage]) for stage in range(options.pp)]
    found = []
    for stage, (start, count) in enumerate(zip(starts, layers, strict=True)):
        shared, routed = stage_params(model, options, stage, range(start, start + count))
        exchange = _exchange_s(options, place, shared, options.dp * options.cp, options.tp)
        exchange += _exchange_s(options, place, routed, options.expert_dp, options.expert_tp)
        exchange = _visible_s(options, exchange, backward_s)
        exchange += _tied_s(model, options, place, stage)
        shards = options.dp * options.cp if options.zero else 1
        experts = options.expert_dp if options.zero else 1
        held = shared / shards + routed / experts
        found.append((exchange, _optimizer_s(options, place, held, shared + routed)))
    return max(found, key=sum)


def _exchange_s(options: TrainOptions, place: Place, params: int, ranks: int, inner: int) -> float:
    """All data-parallel traffic of one step for so many parameters."""
    if ranks <= 1 or not params:
        return 0.0
    nodes = min(place.nodes_of(ranks * inner), ranks)
    form = options.format
    gradients = params * form.gradient_bytes
    weights = params * form.weight_bytes
    if options.zero == 0:
        return place.exchange("all_reduce", gradients, ranks, nodes).time_s
    scatter = place.exchange("reduce_scatter", gradients, ranks, nodes).time_s
    gather = place.exchange("all_gather", weights, ranks, nodes).time_s
    if options.zero < 3:
        return scatter + gather
    half = place.exchange("reduce_scatter", params * 2, ranks, nodes).time_s
    gathers = place.exchange("all_gather", params * 2, ranks, nodes).time_s
    return options.micro_batches * 2 * gathers + options.micro_batches * half


def _visible_s(options: TrainOptions, exchange_s: float, backward_s: float) -> float:
    """Part of the exchange that no computation hides."""
    if not options.overlap_gradients:
        return exchange_s
    exposed = options.stack.gradient_exposed_ratio
    hidden_s = min(exchange_s * (1 - exposed), backward_s)
    return exchange_s - hidden_s


def _tied_s(model: Transformer, options: TrainOptions, place: Place, stage: int) -> float:
    """First and last stage agree on the gradient of a tied embedding."""
    if options.pp == 1 or not model.tied or stage not in (0, options.pp - 1):
        return 0.0
    size = padded_vocab(model, options.tp) // options.tp * model.hidden
    far = options.tp * options.cp * options.dp * (options.pp - 1) >= place.gpus_per_node
    count_bytes = size * options.format.gradient_bytes
    return place.exchange("all_reduce", count_bytes, 2, 2 if far else 1).time_s


def _optimizer_s(options: TrainOptions, place: Place, held: float, params: int) -> float:
    """The optimiser's kernels, all bound by memory: norm, update, and weights written back."""
    form = options.format
    state = options.state_bytes
    read = held * (2 * form.gradient_bytes + 4 + state) + params * form.weight_bytes
    written = held * (4 + state) + params * (form.weight_bytes + form.gradient_bytes)
    return stream(int(read), int(written), place.chip).scaled(options.stack.stream_ratio).time_s


def _energy_j(
    options: TrainOptions, machine: Machine, stages: list[_Stage], step_s: float
) -> float:
    """Joules of all GPUs: kernels while they run, idle power while they wait."""
    replicas = options.tp * options.dp * options.cp
    total = 0.0
    for stage in stages:
        work = stage.forward + stage.backward + stage.forward_comm + stage.backward_comm
        busy_s = min(work.time_s * options.micro_batches, step_s)
        total += work.energy_j * options.micro_batches
        total += (step_s - busy_s) * place_of(machine).waiting_w
    return total * replicas


WAITING_SHARE = 0.25
"""Of its limit that a GPU draws between kernels at full clock: traces at rest in the highest state
give 56 to 80 W of 400, and servers' mean power (ML.ENERGY) wants a little more."""
