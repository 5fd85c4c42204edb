"""Memory of one rank in training, part by part, from shapes alone.

Two views: what the framework's allocator hands out at its peak (what ``max_memory_allocated``
says), and what the card must hold besides (the allocator's fragments, NCCL, the CUDA context).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from va100.plan.stacks import Attention
from va100.plan.training_options import Recompute, TrainOptions
from va100.plan.workload import Transformer
from va100.units import MIB

VOCAB_MULTIPLE: Final = 128
"""Megatron-LM rounds the vocabulary up to this many times the tensor-parallel size."""
LOGIT_EXTRA_BYTES: Final = 0.3
"""Beside the logits' two copies, per logit: fitted to the same."""
DISPATCH_COPIES: Final = 2
"""Copies of all tokens, and of all routed ones, that sending them to their experts and back keeps:
fitted to the peaks that Megatron-LM's tests print for mixtures of experts."""
CONTEXT_BYTES: Final = 520 * MIB
"""CUDA context, kernels and cuBLAS handles of PyTorch on an A100; assumed."""
NCCL_GROUP_BYTES: Final = 260 * MIB
"""Buffers and channels of one communicator over NVLink; assumed."""
FRAGMENT_SHARE: Final = 0.04
"""Of activations, that PyTorch's allocator keeps without using; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """Peak of one pipeline stage's rank, part by part."""

    stage: int
    layers: int
    params: int
    in_flight: int
    """Micro-batches (of chunks) whose activations are alive at once."""
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    logits_bytes: int
    buffers_bytes: int
    fragmentation_bytes: int
    nccl_bytes: int
    context_bytes: int

    @property
    def peak_bytes(self) -> int:
        """What the framework's allocator gives out at most."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.logits_bytes
            + self.buffers_bytes
        )

    @property
    def device_bytes(self) -> int:
        """What the card must have."""
        return self.peak_bytes + self.fragmentation_bytes + self.nccl_bytes + self.context_bytes


def padded_vocab(model: Transformer, tp: int) -> int:
    """Vocabulary rounded up so that ranks share it in equal, aligned parts."""
    multiple = VOCAB_MULTIPLE * tp
    return -(-model.vocab // multiple) * multiple


def stage_memories(model: Transformer, options: TrainOptions) -> tuple[StageMemory, ...]:
    """Peak memory of a rank of every pipeline stage."""
    layers = options.layers_of_stages(model.layers)
    starts = [sum(layers[:stage]) for stage in range(options.pp)]
    return tuple(
        _stage(model, options, stage, range(start, start + count))
        for stage, (start, count) in enumerate(zip(starts, layers, strict=True))
    )


def worst_stage(memories: tuple[StageMemory, ...]) -> StageMemory:
    """Heaviest stage: the one that decides whether a plan fits."""
    return max(memories, key=lambda memory: (memory.device_bytes, -memory.stage))


def _stage(model: Transformer, options: TrainOptions, stage: int, layers: range) -> StageMemory:
    params = stage_params(model, options, stage, layers)
    form = options.format
    states, gradients, weights = _shards(options)
    in_flight = in_flight_count(options, stage)
    activations = _activations(model, options, stage, layers)
    last = stage == options.pp - 1
    logits = logit_bytes(model, options) if last else 0
    return StageMemory(
        stage=stage,
        layers=len(layers),
        params=sum(params),
        in_flight=in_flight,
        weights_bytes=_spread(form.weight_bytes, params, weights),
        gradients_bytes=_spread(form.gradient_bytes, params, gradients),
        optimizer_bytes=_spread(options.state_bytes, params, states),
        activations_bytes=activations,
        logits_bytes=logits,
        buffers_bytes=options.stack.workspace_bytes + _gathered_bytes(model, options, layers),
        fragmentation_bytes=int(FRAGMENT_SHARE * (activations + logits)),
        nccl_bytes=NCCL_GROUP_BYTES * _groups(options),
        context_bytes=CONTEXT_BYTES,
    )


def _shards(options: TrainOptions) -> list[tuple[int, int]]:
    """Shards of optimiser, gradients and weights: of what all ranks share, and of experts."""
    over, whole = (options.dp * options.cp, options.expert_dp), (1, 1)
    return [over if options.zero >= stage else whole for stage in (1, 2, 3)]


def _spread(each_bytes: float, params: tuple[int, int], shards: tuple[int, int]) -> int:
    """Bytes of shared and routed parameters, each over its count of shards."""
    return int(sum(each_bytes * count / over for count, over in zip(params, shards, strict=True)))


def _groups(options: TrainOptions) -> int:
    sizes = (options.tp, options.pp, options.dp * options.cp, options.ep)
    return sum(size > 1 for size in sizes)


def stage_params(
    model: Transformer, options: TrainOptions, stage: int, layers: range
) -> tuple[int, int]:
    """Parameters one rank of a stage holds: what data-parallel ranks share, and experts."""
    tp, vocab = options.tp, padded_vocab(model, options.tp)
    routed = 0
    if model.experts is None:
        shared = len(layers) * _layer_shared(model, tp, layers.start)
    else:
        shared = sum(_layer_shared(model, tp, index) for index in layers)
        each = model.routed_params // (options.ep * options.expert_tp)
        routed = each * sum(model.has_experts(index) for index in layers)
    if stage == 0:
        shared += (model.positions + model.token_types) * model.hidden + model.extra_params
        shared += vocab * model.hidden // tp
        shared += model.norm_params if model.embedding_norm else 0
    if stage == options.pp - 1:
        shared += (model.norm_params if model.final_norm else 0) + model.head_params
        if not model.tied or options.pp > 1:
            shared += vocab * model.hidden // tp
    return shared, routed


def _layer_shared(model: Transformer, tp: int, index: int) -> int:
    """Parameters of one layer on one rank but its routed experts.

    Matrices are split; what every rank keeps whole: norms, the router, biases after a sum.
    """
    whole = model.norms_per_layer * model.norm_params
    whole += model.hidden * (model.out_bias + model.mlp_bias)
    if model.has_experts(index):
        whole += model.router_params
        split = model.shared_params - model.hidden * model.mlp_bias * (model.shared_params > 0)
    else:
        split = model.mlp_params(model.ffn) - model.hidden * model.mlp_bias
    split += model.attention_params - model.hidden * model.out_bias
    return whole + split // tp


def in_flight_count(options: TrainOptions, stage: int) -> int:
    """Micro-batches alive at once in a stage (of chunks, in the interleaved schedule)."""
    if options.chunks == 1:
        return min(options.micro_batches, options.pp - stage)
    warm = 2 * (options.pp - stage - 1) + (options.chunks - 1) * options.pp
    return min(options.micro_batches * options.chunks, warm + 1)


def _activations(model: Transformer, options: TrainOptions, stage: int, layers: range) -> int:
    """Bytes kept for the backward pass by all micro-batches in flight, at the stage's peak."""
    if model.experts is None:
        held = len(layers) * layer_activation_bytes(model, options, layers.start)
    else:
        held = sum(layer_activation_bytes(model, options, index) for index in layers)
    per_micro_batch = held / options.chunks
    count = in_flight_count(options, stage)
    total = count * per_micro_batch
    if options.recompute is Recompute.FULL:
        total += max(_whole_layer_bytes(model, options, index) for index in _unlike(model, layers))
    tokens = _tokens(options)
    wide = model.hidden * options.format.activation_bytes
    split = options.tp if options.sequence_parallel else 1
    if stage == 0 and model.dropout:
        # The mask of the embedding's dropout; what it puts out is the first layer's input.
        total += count / options.chunks * tokens * model.hidden / split
    if stage == options.pp - 1:
        total += 2 * tokens * wide / split
    return int(total)


def _unlike(model: Transformer, layers: range) -> range:
    """Layers that need a look each: the first of equal ones, all where some have experts."""
    return layers if model.experts is not None else layers[:1]


def _tokens(options: TrainOptions) -> int:
    return options.micro_batch * options.seq // options.cp


def layer_activation_bytes(model: Transformer, options: TrainOptions, index: int) -> float:
    """Bytes that one layer keeps of one micro-batch."""
    if options.recompute is Recompute.FULL:
        split = options.tp if options.sequence_parallel else 1
        return _tokens(options) * model.hidden * options.format.activation_bytes / split
    whole = _whole_layer_bytes(model, options, index)
    if options.recompute is Recompute.SELECTIVE:
        whole -= _score_bytes(model, options)
    return whole


def _whole_layer_bytes(model: Transformer, options: TrainOptions, index: int) -> float:
    tokens, each = _tokens(options), options.format.activation_bytes
    tp = options.tp
    split = tp if options.sequence_parallel else 1
    norms = 2 if not model.parallel_block else 1
    masks = norms * model.hidden * model.dropout
    # Inputs of the norms, and what they put out, which is the products' input.
    around = (2 * norms * model.hidden * each + masks) / split
    heads = (model.heads * 2 + 2 * model.kv_heads) * model.head_dim * each / tp
    if model.latent is not None:
        heads = _latent_bytes(model, each, tp)
    core = _score_bytes(model, options)
    if options.attention is Attention.FLASH:
        core = 4 * model.heads * tokens / tp  # one logarithm of sums a row
    if not model.has_experts(index):
        return tokens * (around + heads + _mlp_values(model, options, model.ffn) * each / tp) + core
    return tokens * (around + heads) + core + _expert_bytes(model, options)


def _latent_bytes(model: Transformer, each: int, tp: int) -> float:
    latent = model.latent
    if latent is None:
        return 0.0
    head = latent.nope_dim + latent.rope_dim
    wide = 2 * head + 2 * latent.v_dim
    return (2 * (latent.q_rank + latent.kv_rank) + model.heads * wide / tp) * each


def _mlp_values(model: Transformer, options: TrainOptions, width: int) -> int:
    """Values of an MLP kept per token: before and after its nonlinearity."""
    return (options.stack.gate_values if model.gated else 2) * width


def _expert_bytes(model: Transformer, options: TrainOptions) -> float:
    """Kept by a mixture of experts: routing, tokens in expert order, and inside the experts."""
    experts = model.experts
    if experts is None:
        return 0.0
    tokens, each = _tokens(options), options.format.activation_bytes
    split = options.tp if options.sequence_parallel else 1
    # Tokens that a rank's experts get: those of the whole group, over the ranks that share them.
    routed = tokens * experts.per_token * options.tp / (split * options.expert_tp)
    routed_values = 2 * model.hidden * options.expert_tp + _mlp_values(model, options, experts.ffn)
    shared_values = _mlp_values(model, options, experts.shared_ffn) / options.tp
    routing = tokens * experts.count * 4 * 2 / split
    routing += DISPATCH_COPIES * (1 + experts.per_token) * tokens * model.hidden * each
    return routing + (routed * routed_values / options.tp + tokens * shared_values) * each


def _score_bytes(model: Transformer, options: TrainOptions) -> float:
    """Scores kept without flash attention: softmax's output, dropout's mask and output."""
    if options.attention is Attention.FLASH:
        return 0.0
    each = options.format.activation_bytes
    kept = 2 * each + 1 if model.dropout else each
    seq = options.seq
    return kept * model.heads / options.tp * options.micro_batch * seq * (seq / options.cp)


def logit_bytes(model: Transformer, options: TrainOptions) -> int:
    """Logits of one micro-batch, as the products give them and again in fp32 for the loss."""
    count = _tokens(options) * padded_vocab(model, options.tp) // options.tp
    each = options.format.activation_bytes
    return int(count * (each + 4 + LOGIT_EXTRA_BYTES))


def _gathered_bytes(model: Transformer, options: TrainOptions, layers: range) -> int:
    """Layers gathered at once under ZeRO-3: the one in use and the next."""
    if options.zero < 3:
        return 0
    largest = max(_layer_shared(model, options.tp, index) for index in _unlike(model, layers))
    if model.experts is not None:
        largest += model.routed_params // (options.ep * options.expert_tp)
    return 2 * largest * 2
