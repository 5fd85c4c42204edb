"""Memory of one GPU that serves: weights, what a step needs, and the cache that is left.

What an engine will *reserve* is a share of the card whatever the model; what the model *needs* is
less.  Both are said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from va100.plan.machine import Machine
from va100.plan.serving_options import CACHE_BYTES, ServeOptions
from va100.plan.workload import Transformer
from va100.units import MIB

CONTEXT_BYTES: Final = 620 * MIB
"""CUDA context and graphs of an engine; assumed."""
NCCL_BYTES: Final = 350 * MIB
"""Communicators of tensor- and pipeline-parallel ranks; assumed."""
VISION_IMAGE_TOKENS: Final = 16384
"""Most tokens of one image that engines try out when they start, in the language model's tokens."""
VISION_PATCHES_PER_TOKEN: Final = 4
VISION_VALUES: Final = 44
"""16-bit values a patch keeps alive at the peak of a tower's layer, in units of its width:
residual, norm, queries, keys, values, and the fp32 copies that rotating queries and keys makes;
assumed, and just enough that a published refusal is one (vllm-project/vllm#18124)."""
VISION_WIDTH: Final = 1280


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeMemory:
    """One stage's GPU."""

    stage: int
    layers: int
    weights_bytes: int
    step_bytes: int
    """Activations and logits of the largest step."""
    vision_bytes: int
    """Peak of trying out the largest image."""
    context_bytes: int
    budget_bytes: int
    """The share of the card that the engine may take."""
    token_bytes: float
    """Cache of one token in this stage."""
    block_bytes: float

    @property
    def fixed_bytes(self) -> int:
        """All but the cache."""
        return self.weights_bytes + self.step_bytes + self.vision_bytes + self.context_bytes

    @property
    def cache_bytes(self) -> int:
        """What is left for the cache."""
        return max(self.budget_bytes - self.fixed_bytes, 0)

    @property
    def fits(self) -> bool:
        """Whether at least one block of the cache fits."""
        return self.budget_bytes - self.fixed_bytes >= self.block_bytes


def serve_memories(
    model: Transformer, options: ServeOptions, machine: Machine
) -> tuple[ServeMemory, ...]:
    """Every stage's GPU."""
    layers = options.layers_of_stages(model.layers)
    starts = [sum(layers[:stage]) for stage in range(options.pp)]
    return tuple(
        _stage(model, options, machine, stage, range(start, start + count))
        for stage, (start, count) in enumerate(zip(starts, layers, strict=True))
    )


def _stage(
    model: Transformer, options: ServeOptions, machine: Machine, stage: int, layers: range
) -> ServeMemory:
    token = token_bytes(model, options, layers)
    return ServeMemory(
        stage=stage,
        layers=len(layers),
        weights_bytes=stage_weight_bytes(model, options, stage, layers),
        step_bytes=step_bytes(model, options),
        vision_bytes=_vision_bytes(model, options) if stage == 0 else 0,
        context_bytes=CONTEXT_BYTES + (NCCL_BYTES if options.gpus > 1 else 0),
        budget_bytes=int(machine.memory_bytes * options.memory_share),
        token_bytes=token,
        block_bytes=token * options.block,
    )


def stage_weight_bytes(model: Transformer, options: ServeOptions, stage: int, layers: range) -> int:
    """Weights of one rank of a stage: layers as quantised, embeddings 16 bits wide."""
    tp = options.tp
    layer_bits = sum(model.layer_params(index) for index in layers) * options.format.weight_bits
    count = layer_bits / 8 / tp
    if stage == 0:
        count += model.embedding_params * 2 / tp + model.extra_params * 2
    if stage == options.pp - 1:
        count += model.output_params * 2 / tp
        if model.tied and options.pp > 1:
            count += model.vocab * model.hidden * 2 / tp
    return int(count)


def token_bytes(model: Transformer, options: ServeOptions, layers: range) -> float:
    """Cache of one token on one rank; key heads beyond their count are copied, not split."""
    split = 1.0 if model.latent is not None else float(min(options.tp, model.kv_heads))
    return len(layers) * model.kv_values_per_token * CACHE_BYTES[options.cache] / split


def step_tokens(model: Transformer, options: ServeOptions) -> int:
    """Tokens of the largest step."""
    limit = options.max_context or model.max_context or options.prompt + options.output
    if options.chunk:
        return min(options.chunk, max(limit, options.most_sequences))
    return max(limit, options.most_sequences)


def step_bytes(model: Transformer, options: ServeOptions) -> int:
    """Activations of the largest step: residual, the widest layer's values, sampled logits."""
    tokens, tp = step_tokens(model, options), options.tp
    heads = (model.heads + 2 * model.kv_heads) * model.head_dim
    ffn = model.ffn if model.experts is None else model.experts.ffn * model.experts.per_token
    inner = (3 if model.gated else 2) * ffn
    values = tokens * (3 * model.hidden + max(heads, inner) / tp)
    logits = options.most_sequences * model.vocab * (2 + 4) / tp
    return int(values * 2 + logits)


def _vision_bytes(model: Transformer, options: ServeOptions) -> int:
    if not model.extra_params:
        return 0
    patches = VISION_IMAGE_TOKENS * VISION_PATCHES_PER_TOKEN
    return patches * VISION_WIDTH * VISION_VALUES * 2


def cache_tokens(model: Transformer, memories: tuple[ServeMemory, ...]) -> int:
    """Tokens that the cache holds: the poorest stage decides."""
    del model
    return min(
        int(memory.cache_bytes // memory.block_bytes)
        * round(memory.block_bytes / memory.token_bytes)
        for memory in memories
    )


def sequence_bytes(model: Transformer, options: ServeOptions, length: int, layers: range) -> float:
    """Cache of one sequence in some layers; layers with a window keep no more than it."""
    each = token_bytes(model, options, range(1))
    blocks = options.block
    total = 0.0
    for index in layers:
        held = min(length, model.window) if model.windowed(index) else length
        total += -(-held // blocks) * blocks * each
    return total


def max_context(
    model: Transformer, options: ServeOptions, memories: tuple[ServeMemory, ...]
) -> int:
    """Longest single sequence whose cache fits every stage, by bisection; 0 when none does."""
    limit = options.max_context or model.max_context or 2**24
    starts = [sum(m.layers for m in memories[:stage]) for stage in range(len(memories))]

    def fits(length: int) -> bool:
        return all(
            sequence_bytes(model, options, length, range(start, start + memory.layers))
            <= memory.cache_bytes
            for start, memory in zip(starts, memories, strict=True)
        )

    if not fits(1):
        return 0
    low, high = 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
